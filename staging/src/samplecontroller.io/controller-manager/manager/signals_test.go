// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"samplecontroller.io/controller-manager/controller"
)

// asProgram is the variable with which the test binary runs as a program: see startProgram.
const asProgram = "TEST_MANAGER_CONTROLLERS"

// runAsProgram runs a program. Its controllers end when they are told to, or never. Or it is a
// program with a mistake.
func runAsProgram(controllers string) int {
	p := program(func(name string, _ *controller.Context) (controller.Controller, error) {
		return &fake{name: name, history: &history{}, run: func(ctx context.Context) error {
			<-ctx.Done()
			if controllers == "hang" {
				select {}
			}
			return nil
		}}, nil
	})
	if m, ok := mistakes[controllers]; ok {
		m.make(&p)
	}
	return Main(p)
}

// running is a program in a process of its own.
type running struct {
	*exec.Cmd
	log  *bufio.Reader
	read strings.Builder // of the log
}

// startProgram starts a program with these arguments.
func startProgram(t *testing.T, controllers string, args ...string) *running {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	r := &running{Cmd: exec.CommandContext(ctx, self, args...)}
	r.Env = append(os.Environ(), asProgram+"="+controllers)
	log, err := r.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.log = bufio.NewReader(log)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Process.Kill() })
	return r
}

// waitLog reads the log up to a line with this text.
func (r *running) waitLog(t *testing.T, text string) {
	t.Helper()
	for {
		line, err := r.log.ReadString('\n')
		r.read.WriteString(line)
		if err != nil {
			t.Fatalf("waiting for %q: %v; the log:\n%s", text, err, &r.read)
		}
		if strings.Contains(line, text) {
			return
		}
	}
}

// end waits for the end, and returns the rest of the log and the exit code.
func (r *running) end(t *testing.T) (log string, code int) {
	t.Helper()
	rest, err := io.ReadAll(r.log)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Wait() // the exit code says it
	return string(rest), r.ProcessState.ExitCode()
}

// unanswered returns the flags of a program without election whose API server does not listen.
func unanswered(t *testing.T) []string {
	t.Helper()
	return []string{"--kubeconfig=" + writeKubeconfig(t, "https://127.0.0.1:1"), "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=" + freePort(t)}
}

func TestSignalsEndInOrder(t *testing.T) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // or, under nohup, the programs would ignore it like the test
	t.Cleanup(func() { signal.Stop(hangups) })
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			r := startProgram(t, "end", unanswered(t)...)
			r.waitLog(t, `"Rejecting client certificates`)
			_ = r.Process.Signal(signal)
			r.waitLog(t, fmt.Sprintf(`"Received signal, shutting down" signal=%q`, signal.String()))
			log, code := r.end(t)
			if code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			for line := range strings.Lines(log) {
				if strings.HasPrefix(line, "E") {
					t.Errorf("an orderly end logs an error: %s", line)
				}
			}
		})
	}
}

func TestIgnoredHangupStaysIgnored(t *testing.T) {
	t.Parallel()
	args := unanswered(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", `trap "" HUP; exec "$@"`, "sh", self}, args...)...)
	cmd.Env = append(os.Environ(), asProgram+"=end")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	r := &running{Cmd: cmd, log: bufio.NewReader(stderr)}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.waitLog(t, `"Starting controller"`)
	_ = cmd.Process.Signal(syscall.SIGHUP)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	r.waitLog(t, `"Received signal, shutting down" signal="terminated"`)
	if _, code := r.end(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestSecondSignalIsLogged(t *testing.T) {
	t.Parallel()
	r := startProgram(t, "hang", unanswered(t)...)
	r.waitLog(t, `"Starting controller"`)
	_ = r.Process.Signal(syscall.SIGTERM)
	r.waitLog(t, `"Received signal, shutting down"`)
	_ = r.Process.Signal(syscall.SIGINT)
	log, code := r.end(t)
	if want := `"Received a second signal, exiting at once" signal="interrupt"`; code != 1 || !strings.Contains(log, want) {
		t.Errorf("exit code %d, want 1; the log lacks %q:\n%s", code, want, log)
	}
}

func TestFatalErrorIsJSON(t *testing.T) {
	for name, args := range map[string][]string{
		"not parsed": {"--no-such-flag", "--logging-format=json"},
		"not valid":  {"--logging-format", "json", "--kube-api-qps=0"},
		"not usable": {"--kubeconfig=/does/not/exist", "--logging-format=json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, code := startProgram(t, "end", args...).end(t)
			lines := strings.Split(strings.TrimSpace(log), "\n")
			var last struct{ Msg, Err string }
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || code != 1 || last.Msg != "Command failed" ||
				last.Err == "" {
				t.Errorf("exit code %d, want 1; the last line is no JSON with the error, %v:\n%s", code, err, log)
			}
		})
	}
}

// TestHangingCredentialPluginDoesNotDelayEnd: client-go waits for a plugin without a limit.
func TestHangingCredentialPluginDoesNotDelayEnd(t *testing.T) {
	for election, code := range map[string]int{"true": 1, "false": 0} {
		t.Run("election "+election, func(t *testing.T) {
			t.Parallel()
			started := filepath.Join(t.TempDir(), "started")
			script := `echo $$ >"$0.new"; mv "$0.new" "$0"; exec sleep 1h 2>/dev/null`
			path := writeKubeconfig(t, "https://127.0.0.1:1", "sh", "-c", script, started)
			r := startProgram(t, "end", "--kubeconfig="+path, "--leader-elect="+election, "--controller-shutdown-timeout=1s",
				"--leader-elect-lease-duration=8s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=1s", "--write-timeout=1s",
				"--bind-address=127.0.0.1", "--secure-port="+freePort(t))
			var plugin int
			for plugin == 0 {
				content, _ := os.ReadFile(started)
				plugin, _ = strconv.Atoi(strings.TrimSpace(string(content)))
				time.Sleep(10 * time.Millisecond)
			}
			_ = r.Process.Signal(syscall.SIGTERM)
			log, got := r.end(t)
			if got != code {
				t.Errorf("ended with code %d, want %d; the log:\n%s", got, code, log)
			}
			running, err := os.FindProcess(plugin)
			if err == nil {
				err = running.Kill()
			}
			if err != nil {
				t.Errorf("the plugin had ended, too: %v", err)
			}
		})
	}
}
