// SPDX-License-Identifier: Apache-2.0

// Judges histories that record_histories has written, by porcupine: a checker of linearizability that is not ours.
//
//	go run . FILE.json...
//
// A history is right if there is an order of its requests that explains all replies, in which each request lies between its
// beginning and its end, and those of one session are in the order that the level promises. Porcupine knows nothing of the last: so the
// state says which request of each session is next, and a request that is not next cannot happen.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

type event struct {
	Session   int
	Number    int
	Operation string
	Key       int
	Value     int
	Expected  int
	Begun     int64
	Ended     int64
	Done      bool
	Found     *int
	Moment    uint64
	turn      int // the how manieth of its session that is ordered with it; -1: it has no order
}

type history struct {
	Level  string
	Events []event
}

// What is there, which request of each session is next, and the last moment. Compared as text.
type state struct {
	items  map[int]int
	next   map[int]int
	moment uint64
}

func (s state) text() string { return fmt.Sprint(s.items, s.next, s.moment) }

func (s state) copy() state {
	c := state{map[int]int{}, map[int]int{}, s.moment}
	for k, v := range s.items {
		c.items[k] = v
	}
	for k, v := range s.next {
		c.next[k] = v
	}
	return c
}

// Does the event; false if it would have had another reply, or is not next.
func happens(s *state, e event, total bool) bool {
	if e.turn >= 0 {
		if s.next[e.Session] != e.turn {
			return false
		}
		s.next[e.Session]++
	}
	if total {
		if e.Moment < s.moment {
			return false
		}
		s.moment = e.Moment + 1
	}
	value, there := s.items[e.Key]
	switch e.Operation {
	case "find":
		return e.Done == there && (!there || (e.Found != nil && *e.Found == value))
	case "insert":
		if !there {
			s.items[e.Key] = e.Value
		}
		return e.Done == !there
	case "erase":
		delete(s.items, e.Key)
		return e.Done == there
	case "update":
		if there {
			s.items[e.Key] = e.Value
		}
		return e.Done == there
	case "insert_or_update":
		s.items[e.Key] = e.Value
		return e.Done == !there
	case "compare_and_update":
		same := there && value == e.Expected
		if same {
			s.items[e.Key] = e.Value
		}
		return e.Done == same
	}
	panic("no such operation: " + e.Operation)
}

func model(level string) porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return state{map[int]int{}, map[int]int{}, 0} },
		Step: func(before, in, _ interface{}) (bool, interface{}) {
			after := before.(state).copy()
			return happens(&after, in.(event), level == "total"), after
		},
		Equal: func(a, b interface{}) bool { return a.(state).text() == b.(state).text() },
	}
}

// The parts of a history that are independent of each other: its keys, unless all requests have one order.
func parts(h history) [][]event {
	whole := strings.HasPrefix(h.Level, "sequential") || h.Level == "total"
	of := map[int][]event{}
	turns := map[[2]int]int{}
	order := []int{}
	for _, e := range h.Events {
		part := e.Key
		if whole {
			part = 0
		}
		if _, there := of[part]; !there {
			order = append(order, part)
		}
		e.turn = -1
		if h.Level != "unordered" {
			at := [2]int{part, e.Session}
			e.turn = turns[at]
			turns[at]++
		}
		of[part] = append(of[part], e)
	}
	all := [][]event{}
	for _, part := range order {
		all = append(all, of[part])
	}
	return all
}

func judge(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var h history
	if err := json.Unmarshal(text, &h); err != nil {
		return "", err
	}
	if len(h.Events) == 0 {
		return "", fmt.Errorf("no events")
	}
	verdict := porcupine.Ok
	for _, part := range parts(h) {
		operations := []porcupine.Operation{}
		for _, e := range part {
			operations = append(operations, porcupine.Operation{
				ClientId: e.Session, Input: e, Call: e.Begun, Output: e.Done, Return: e.Ended})
		}
		if r := porcupine.CheckOperationsTimeout(model(h.Level), operations, time.Minute); r != porcupine.Ok {
			verdict = r
			break
		}
	}
	return fmt.Sprintf("%s, %d requests: %s", h.Level, len(h.Events), verdict), nil
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: judge HISTORY.json...")
		os.Exit(2)
	}
	code := 0
	for _, path := range os.Args[1:] {
		verdict, err := judge(path)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(2)
		}
		fmt.Printf("%s: %s\n", path, verdict)
		if !strings.HasSuffix(verdict, string(porcupine.Ok)) {
			code = 1
		}
	}
	os.Exit(code)
}
