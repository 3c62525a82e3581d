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

func residentBytes() (bytes float64) {
	text, _ := os.ReadFile("/proc/self/statm")
	fmt.Sscan(strings.Fields(string(text))[1], &bytes)
	return bytes * float64(os.Getpagesize())
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
	fmt.Printf("go_blocked_bytes %.0f\n", (residentBytes()-before)/float64(n))
	close(block)
}

func main() {
	if runtime.GOMAXPROCS(0) > 1 || runtime.NumCPU() == 1 { // with one P it takes three times as long
		spawn(scale(300_000)) // first: later goroutines would reuse what dead ones left
		debug.FreeOSMemory()
	}
	fmt.Printf("go_ring_1k_hop_ns %.1f\n", nsPerStep(1_000_000, ring))
	fmt.Printf("go_fanin_100_rate_m %.2f\n", 1e3/nsPerStep(3_000_000, fanIn))
	fmt.Printf("go_calls_100_rate_m %.2f\n", 1e3/nsPerStep(500_000, calls))
}
