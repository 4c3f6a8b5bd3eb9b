// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// watchdog reads its standard input to the end. A line means an orderly end; an end of file
// without a line means that the process that held the pipe has died. The second attempt to
// remove the directory is for files that a dying child wrote during the first.
const watchdog = `
trap '' HUP INT TERM
read -r farewell && exit
for file in "$1"/*.pid; do
	kill -KILL "$(cat "$file")"
done
rm -rf "$1" || { sleep 1; rm -rf "$1"; }
`

// Group is a set of child processes that share a directory. Its methods, except Close, are
// safe for concurrent use.
type Group struct {
	dir      string
	watchdog *exec.Cmd
	lifeline io.WriteCloser
}

// NewGroup starts a group that keeps its shims, process IDs and logs in dir. From now on, dir
// is removed if this process dies without calling [Group.Close].
func NewGroup(dir string) (*Group, error) {
	cmd := exec.Command("/bin/sh", "-c", watchdog, "watchdog", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("making the watchdog's pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	return &Group{dir: dir, watchdog: cmd, lifeline: lifeline}, nil
}

// Close ends the watchdog. It neither stops processes nor removes the directory: do both
// before.
func (g *Group) Close() error {
	_, err := io.WriteString(g.lifeline, "farewell\n")
	return errors.Join(err, g.lifeline.Close(), g.watchdog.Wait())
}

// Shim writes a script that runs the program at path as a member of the group, and returns the
// path of the script. It is for callers that start programs themselves, such as envtest.
// Others use [Group.Start].
func (g *Group) Shim(name, path string) (string, error) {
	shim := filepath.Join(g.dir, name+".sh")
	script := fmt.Sprintf("#!/bin/sh\necho $$ >%s\nexec %s \"$@\"\n", quote(g.pidFile(name)), quote(path))

	// A child forked while the script is open for writing would inherit the
	// descriptor, and the script could not be executed ("text file busy")
	// until that child has called exec.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(shim, []byte(script), 0o700); err != nil {
		return "", fmt.Errorf("writing the shim of %s: %w", name, err)
	}
	return shim, nil
}

// LogPath returns the path of the file that receives the output of the named process.
func (g *Group) LogPath(name string) string {
	return filepath.Join(g.dir, name+".log")
}

// OpenLog opens the file at [Group.LogPath] for appending.
func (g *Group) OpenLog(name string) (*os.File, error) {
	return os.OpenFile(g.LogPath(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

func (g *Group) pidFile(name string) string {
	return filepath.Join(g.dir, name+".pid")
}

// quote quotes s as one word for the shell.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
