// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/misuse"
)

// mistakes are made in programs. Each program ends with one line.
var mistakes = map[string]struct {
	make func(*Program)
	want string // the last line
}{
	"misnamed controller": {
		func(p *Program) { p.Controllers[0].Name = "foo" },
		`Error: registering controller "foo": its name must end in "-controller"`,
	},
	"two controllers of one name": {
		func(p *Program) { p.Controllers[1].Name = "foo-controller" },
		`Error: registering controller "foo-controller": "foo-controller" is taken by "foo-controller"`,
	},
	"two flags of one name": {
		func(p *Program) { p.Controllers[1].Flags = p.Controllers[0].Flags },
		`Error: adding flags of foo-controller: --foo-size is already in section "bar-controller"`,
	},
	"two flags of one letter": {
		func(p *Program) {
			p.Controllers[0].Flags = func(fs *pflag.FlagSet) { fs.BoolP("verbose", "v", false, "") }
		},
		`Error: adding flags of foo-controller: -v is already in section "logs"`,
	},
	"flag of preflight": {
		func(p *Program) {
			p.Controllers[0].Flags = func(fs *pflag.FlagSet) { fs.String("output", "", "") }
		},
		`Error: --output and -o are flags of subcommands: the section "foo-controller" must not have them`,
	},
	"no name": {
		func(p *Program) { p.Name = "" },
		`Error: the Name "" of the program is invalid: `,
	},
	"no controllers": {
		func(p *Program) { p.Controllers = nil },
		"Error: test-manager has no controllers",
	},
	"constructor": {
		func(p *Program) {
			p.Controllers[0].New = func(context.Context, *controller.Context) (controller.Controller, error) { return nil, nil }
		},
		`"Controller manager failed" err="building foo-controller: its constructor returned no controller"`,
	},
	"panic with a misuse": {
		func(p *Program) { p.Controllers[0].Flags = func(*pflag.FlagSet) { panic(misuse.Errorf("used twice")) } },
		"Error: used twice",
	},
	"other panic": {
		func(p *Program) { p.Controllers[0].Flags = func(*pflag.FlagSet) { panic("index out of range") } },
		"",
	},
}

func TestWrongFlagEndsWithOneLine(t *testing.T) {
	for args, want := range map[string]string{
		"--help=maybe": `Error: invalid argument "maybe" for "-h, --help" flag: "maybe" is not true or false; see test-manager --help`,
		"-h -x":        "Error: unknown shorthand flag: 'x' in -x; see test-manager --help",
	} {
		log, code := startProgram(t, "end", strings.Fields(args)...).end(t)
		if code != 1 || log != want+"\n" {
			t.Errorf("%s: exit code %d, want 1; %q, want %q", args, code, log, want)
		}
	}
}

func TestMistakeInProgramEndsWithOneLine(t *testing.T) {
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, code := startProgram(t, name, unanswered(t)...).end(t)
			if m.want == "" {
				if code != 2 || !strings.Contains(log, "panic: index out of range") || !strings.Contains(log, "manager.init") {
					t.Errorf("exit code %d, want 2 and the stack of the panic:\n%s", code, log)
				}
				return
			}
			lines := strings.Split(strings.TrimSpace(log), "\n")
			if last := lines[len(lines)-1]; code != 1 || !strings.Contains(last, m.want) || strings.Contains(log, "goroutine ") {
				t.Errorf("exit code %d, want 1 and the line %q without a stack:\n%s", code, m.want, log)
			}
		})
	}
}
