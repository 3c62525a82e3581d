// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A client inserts 5 and looks for it before the reply; two clients insert one key and miss that of the other one; a lost update.
const overtaken = `[{"session":0,"number":0,"operation":"insert","key":5,"value":1,"begun":1,"ended":3,"done":true},
 {"session":0,"number":1,"operation":"find","key":5,"begun":2,"ended":4,"done":false}]`
const missed = `[{"session":0,"number":0,"operation":"insert","key":5,"begun":1,"ended":5,"done":true},
 {"session":0,"number":1,"operation":"find","key":10,"begun":2,"ended":6,"done":false},
 {"session":1,"number":0,"operation":"insert","key":10,"begun":3,"ended":7,"done":true},
 {"session":1,"number":1,"operation":"find","key":5,"begun":4,"ended":8,"done":false}]`
const lost = `[{"session":0,"number":0,"operation":"insert","key":5,"begun":1,"ended":2,"done":true},
 {"session":1,"number":0,"operation":"find","key":5,"begun":3,"ended":4,"done":false}]`
const exchanged = `[{"session":0,"number":0,"operation":"insert","key":5,"begun":1,"ended":2,"done":true,"moment":1},
 {"session":1,"number":0,"operation":"insert","key":6,"begun":3,"ended":4,"done":true,"moment":0}]`

func verdict(t *testing.T, level, events string) bool {
	if !json.Valid([]byte(events)) {
		t.Fatal("not JSON: " + events)
	}
	path := filepath.Join(t.TempDir(), "history.json")
	if err := os.WriteFile(path, []byte(`{"level":"`+level+`","events":`+events+`}`), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := judge(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.HasSuffix(said, "Ok")
}

func TestEachLevelRejectsWhatTheWeakerOneAllows(t *testing.T) {
	for _, c := range []struct {
		level, events string
		right         bool
	}{
		{"unordered", lost, false}, {"unordered", overtaken, true}, {"per_key", overtaken, false}, {"per_key", missed, true},
		{"sequential", missed, false}, {"sequential", exchanged, true}, {"total", exchanged, false},
	} {
		if verdict(t, c.level, c.events) != c.right {
			t.Errorf("%s: %s is not %v", c.level, c.events, c.right)
		}
	}
}
