// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bench measures the real binary from outside, beside others that do the same
// work. It has benchmarks only: `go test` starts no cluster and times nothing. A figure
// says something of the machine that it was taken on and of what else that did; what
// holds on any machine is tested in package e2e.
//
// BenchmarkHandover repeats each fault as often as -benchtime says. Ten times take about
// five minutes, and want the machine for themselves:
//
//	go -C hack/bench test -run '^$' -bench Handover -benchtime 10x -timeout 30m .
//
// One part of it alone is -bench Handover/standby, Handover/SIGTERM or Handover/kill.
//
// BenchmarkIsolation measures what faults in one controller cost another. Each of its
// rounds takes about 20 seconds for each fault:
//
//	go -C hack/bench test -run '^$' -bench Isolation -benchtime 10x -timeout 60m .
//
// BenchmarkHammer measures what callers cost that ask for the daemon's pages without end.
// Its rounds take as long:
//
//	go -C hack/bench test -run '^$' -bench Hammer -benchtime 10x -timeout 60m .
//
// BenchmarkChurn changes Pods all the time, 500 of 20,000 of 100 Foos each second for half a
// minute in each round, and measures what it takes the daemon to say so, and what it takes who
// cannot do with less. To make the Pods takes minutes. With fewer it shows how it works, and
// with -churn-profile=<dir> what the daemon does:
//
//	go -C hack/bench test -run '^$' -bench Churn -benchtime 5x -timeout 60m .
//	go -C hack/bench test -run '^$' -bench Churn -benchtime 1x . -churn-pods=400 -churn-foos=20 -churn-rate=50
//
// BenchmarkMemory has the daemon cache objects of one sort after the other, up to 100,000 Pods,
// and measures how much larger its live heap is for each; then it starts a fresh daemon on all
// of them. It takes about ten minutes. With fewer it shows how it works:
//
//	go -C hack/bench test -run '^$' -bench Memory -benchtime 1x -timeout 60m .
//	go -C hack/bench test -run '^$' -bench Memory -benchtime 1x . -memory-pods=2000 -memory-foos=100 -memory-others=500 -memory-unlabelled-pods=500

// BenchmarkTakeover has a user edit Foos while the daemon goes through all after its start,
// when these are as they should be and when each is to be written. Each of its rounds takes
// some minutes:
//
//	go -C hack/bench test -run '^$' -bench Takeover -benchtime 3x -timeout 60m .
//	go -C hack/bench test -run '^$' -bench Takeover/settled -benchtime 5x .
//
//	handover_test.go  the benchmark: what is done, and what it may take
//	round_test.go     one handover, and what the audit log says of it
//	fleet_test.go     two replicas of a program
//	ours_test.go      the daemon
//	stock_test.go     a program that elects a leader as client-go has it
//	lab_test.go       the cluster and its 5,000 Foos
//	table_test.go     figures for people
//
//	isolation_test.go the benchmark: the faults, and what they may cost
//	work_test.go      how fast Foos are served
//
//	scrape_test.go    the benchmark: who asks for what, and what that may cost
//
//	churn_test.go     the benchmark: what it takes, and what it may
//	pods_test.go      Pods that change, and what statuses tell of them
//	decoder_test.go   a program that is told of Pods and does nothing
//	teller_test.go    a program that makes the writes that cannot be avoided
//	profile_test.go   profiles of the daemon
//
//	memory_test.go    the benchmark: what it has the daemon take, and what it may
//	objects_test.go   what is cached, and what is not
//	observed_test.go  a daemon that is asked what it takes
//
//	takeover_test.go  the benchmark: what is found, who takes over, and how long edits may wait
//	resync_test.go    one take-over
//	user_test.go      who edits Foos meanwhile, and what became of that
//
// What compares the daemon with its peers on Foos is a program: package peers.
package bench
