// SPDX-License-Identifier: Apache-2.0

// Goroutines and channels. The driver runs this with GOMAXPROCS=1 and with the default, and keeps
// the better figure for Go.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

func scale(n int) int {
	if s, err := strconv.ParseFloat(os.Getenv("PEER_SECONDS"), 64); err == nil {
		return int(float64(n) * s)
	}
	return n
}

// The median time of three runs for each of n steps, in ns.
func nsPerStep(n int, run func(n int)) float64 {
	n = scale(n)
	run(n / 10)
	var samples []float64
	for i := 0; i < 3; i++ {
		start := time.Now()
		run(n)
		samples = append(samples, float64(time.Since(start).Nanoseconds())/float64(n))
	}
	sort.Float64s(samples)
	return samples[1]
}

// A token goes around 1,000 goroutines; each channel holds one, so that a sender never waits.
func ring(hops int) {
	const size = 1000
	first := make(chan int, 1)
	done := make(chan bool)
	in := first
	for i := 0; i < size; i++ {
		out := first
		if i < size-1 {
			out = make(chan int, 1)
		}
		go func(in, out chan int) {
			for left := range in {
				if left < 0 { // the token has come to its end and now ends the ring
					if left > -size {
						out <- left - 1
					} else {
						done <- true
					}
					return
				}
				out <- left - 1
			}
		}(in, out)
		in = out
	}
	first <- hops
	<-done
}

// 100 senders, one receiver, one channel. A buffer of 512 was the fastest of 16 to 16,384.
func fanIn(messages int) {
	ch := make(chan int, 512)
	for i := 0; i < 100; i++ {
		go func() {
			for j := 0; j < messages/100; j++ {
				ch <- j
			}
		}()
	}
	for i := 0; i < messages/100*100; i++ {
		<-ch
	}
}

type request struct {
	value int
	reply chan int
}

// 100 goroutines call one server; each has its own reply channel.
func calls(n int) {
	server := make(chan request, 100)
	go func() {
		for r := range server {
			r.reply <- r.value + 1
		}
	}()
	var wg sync.WaitGroup
	wg.Add(100)
	for i := 0; i < 100; i++ {
		go func() {
			defer wg.Done()
			reply := make(chan int, 1)
			for j := 0; j < n/100; j++ {
				server <- request{j, reply}
				<-reply
			}
		}()
	}
	wg.Wait()
	close(server)
}

func residentBytes() float64 {
	text, _ := os.ReadFile("/proc/self/statm")
	pages, _ := strconv.ParseFloat(strings.Fields(string(text))[1], 64)
	return pages * float64(os.Getpagesize())
}

// Goroutines that have started and wait on a channel.
func spawn(n int) {
	before := residentBytes()
	start := time.Now()
	block := make(chan int)
	var started sync.WaitGroup
	started.Add(n)
	for i := 0; i < n; i++ {
		go func() {
			started.Done()
			<-block
		}()
	}
	started.Wait()
	fmt.Printf("go_spawn_ns %.1f\n", float64(time.Since(start).Nanoseconds())/float64(n))
	runtime.Gosched()
	fmt.Printf("go_blocked_bytes %.0f\n", (residentBytes()-before)/float64(n))
	close(block)
}

func main() {
	if runtime.GOMAXPROCS(0) > 1 || runtime.NumCPU() == 1 { // with one P it takes three times as long
		spawn(scale(1_000_000)) // first: later goroutines would reuse what dead ones left
		debug.FreeOSMemory()
	}
	fmt.Printf("go_ring_1k_hop_ns %.1f\n", nsPerStep(1_000_000, ring))
	fmt.Printf("go_fanin_100_rate_m %.2f\n", 1e3/nsPerStep(3_000_000, fanIn))
	fmt.Printf("go_calls_100_rate_m %.2f\n", 1e3/nsPerStep(500_000, calls))
}
