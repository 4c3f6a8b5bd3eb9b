// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2/ktesting"
)

var errBroken = errors.New("broken")

func TestFailedControllerRestartsWithBackoff(t *testing.T) {
	tests := map[string]func(ctx context.Context, nth int) error{
		"returns an error": func(context.Context, int) error { return errBroken },
		"panics":           func(context.Context, int) error { panic("out of range") },
		"just returns":     func(context.Context, int) error { return nil },
	}
	for name, fail := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				bad := newFake("bad-controller", func(ctx context.Context, nth int) error {
					if nth == 5 {
						return work(ctx, nth)
					}
					return fail(ctx, nth)
				})
				good := newFake("good-controller")
				s := New(all(bad, good), Options{Backoff: exactBackoff})
				end := begin(t, s)
				time.Sleep(time.Hour)

				want := []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second}
				if diff := cmp.Diff(want, bad.started()); diff != "" {
					t.Errorf("starts of the failing controller (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff([]time.Duration{0}, good.started()); diff != "" {
					t.Errorf("starts of the good controller (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(map[string]State{"bad-controller": Running, "good-controller": Running}, states(s)); diff != "" {
					t.Errorf("states after recovery (-want +got):\n%s", diff)
				}
				expectEnd(t, end)
			})
		})
	}
}

// TestPanicIsLoggedOnce covers a panic while a controller runs and while it stops.
func TestPanicIsLoggedOnce(t *testing.T) {
	for name, stopping := range map[string]bool{"running": false, "stopping": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				bad := newFake("bad-controller", func(ctx context.Context, nth int) error {
					if stopping || nth > 1 {
						<-ctx.Done()
					}
					if stopping || nth == 1 {
						panic("out of range")
					}
					return nil
				})
				end, log := beginWithLog(t, New(all(bad), Options{Backoff: exactBackoff}))
				time.Sleep(time.Minute)
				expectEnd(t, end)
				lines := 0
				for _, entry := range log.Data() {
					if entry.Type != ktesting.LogError {
						continue
					}
					lines++
					stack := fmt.Sprint(append(entry.ParameterKVList, entry.WithKVList...)...)
					if entry.Err.Error() != "panic: out of range" || !strings.Contains(stack, "restart_test.go") || !strings.Contains(stack, "bad-controller") {
						t.Errorf("%q with error %v and %s, want the panic, its stack and the controller", entry.Message, entry.Err, stack)
					}
				}
				if lines != 1 {
					t.Errorf("%d errors are logged, want one", lines)
				}
			})
		})
	}
}

func TestRestartsContinueOncePerMinute(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		bad := newFake("bad-controller", func(context.Context, int) error { return errBroken })
		end := begin(t, New(all(bad), Options{})) // the default backoff, with its jitter
		time.Sleep(24 * time.Hour)
		expectEnd(t, end)

		starts := bad.started()
		if len(starts) < 24*60*10/11 {
			t.Fatalf("started %d times in a day, want about once a minute", len(starts))
		}
		for i, least := 1, time.Second; i < len(starts); i, least = i+1, min(2*least, time.Minute) {
			if got := starts[i] - starts[i-1]; got < least || got > least*11/10 {
				t.Fatalf("restart %d came after %v, want %v and up to a tenth more", i, got, least)
			}
		}
	})
}

func TestRecoveryResetsBackoff(t *testing.T) {
	tests := map[string]struct {
		ran  time.Duration
		want time.Duration // until the restart
	}{
		"ran for less than 5 minutes": {recovered - 1, 8 * time.Second},
		"ran for 5 minutes":           {recovered, 1 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				bad := newFake("bad-controller", func(ctx context.Context, nth int) error {
					switch nth {
					case 4:
						time.Sleep(tc.ran)
					case 5:
						return work(ctx, nth)
					}
					return errBroken
				})
				end := begin(t, New(all(bad), Options{Backoff: exactBackoff}))
				time.Sleep(time.Hour)
				expectEnd(t, end)
				starts := bad.started()
				if len(starts) != 5 {
					t.Fatalf("started %d times, want 5", len(starts))
				}
				if got := starts[4] - starts[3] - tc.ran; got != tc.want {
					t.Errorf("restarted %v after the last failure, want %v", got, tc.want)
				}
			})
		})
	}
}

func TestTermEndsDuringBackoff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		bad := newFake("bad-controller", func(context.Context, int) error { return errBroken })
		s := New(all(bad), Options{Backoff: exactBackoff})
		end := begin(t, s)
		time.Sleep(100 * time.Second) // during a wait of a minute

		told := time.Now()
		expectEnd(t, end)
		if took := time.Since(told); took != 0 {
			t.Errorf("Run took %v to end, want no time", took)
		}
		if diff := cmp.Diff(map[string]State{"bad-controller": Standby}, states(s)); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
	})
}

func TestNewTermResetsBackoff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		bad := newFake("bad-controller", func(context.Context, int) error { return errBroken })
		s := New(all(bad), Options{Backoff: exactBackoff})
		for range 2 {
			bad.begin, bad.starts = time.Now(), nil
			end := begin(t, s)
			time.Sleep(4 * time.Second)
			expectEnd(t, end)
			if diff := cmp.Diff([]time.Duration{0, 1 * time.Second, 3 * time.Second}, bad.started()); diff != "" {
				t.Errorf("starts (-want +got):\n%s", diff)
			}
		}
	})
}

func TestFailureWhileStoppingCausesNoRestart(t *testing.T) {
	tests := map[string]func(){
		"error": func() {},
		"panic": func() { panic("out of range") },
	}
	for name, fail := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				bad := newFake("bad-controller", func(ctx context.Context, _ int) error {
					<-ctx.Done()
					fail()
					return errBroken
				})
				s := New(all(bad), Options{})
				end := begin(t, s)
				expectEnd(t, end)
				synctest.Wait()
				if got := len(bad.started()); got != 1 {
					t.Errorf("started %d times, want once", got)
				}
				if diff := cmp.Diff(map[string]State{"bad-controller": Standby}, states(s)); diff != "" {
					t.Errorf("states (-want +got):\n%s", diff)
				}
			})
		})
	}
}
