// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package commandlines

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// generator makes command lines of the command's own flags.
type generator struct {
	*rand.Rand
	places places
	flags  []*pflag.Flag
	wrong  []string // flags with values that must be refused, whatever else is given
}

func newGenerator(random *rand.Rand, places places) *generator {
	g := &generator{Rand: random, places: places}
	for _, flag := range flagsOf() {
		if flag.Name != "help" { // with it all else is well
			g.flags = append(g.flags, flag)
		}
	}
	for flag, values := range wrong {
		for _, value := range values {
			g.wrong = append(g.wrong, "--"+flag+"="+value)
		}
	}
	slices.Sort(g.wrong) // a map has no order
	return g
}

// line returns a command line, and the flag that it is to be refused for; "" if that is
// not known. One that serves is completed with all that this takes.
func (g *generator) line(serves bool) (args []string, culprit string) {
	args = g.places.base(serves)
	odd := g.IntN(3) == 0
	for range g.IntN(6) {
		args = append(args, g.argument(odd))
	}
	if !odd && g.IntN(2) == 0 {
		arg := g.wrong[g.IntN(len(g.wrong))]
		culprit = nameOf(arg)
		// Given again, it would have another value, or a second one.
		args = slices.DeleteFunc(args, func(other string) bool { return nameOf(other) == culprit })
		if strings.HasPrefix(culprit, "--leader-elect") {
			args = append(args, "--leader-elect=true") // without it they do not matter
		}
		args = append(args, arg)
	}
	return args, culprit
}

// argument returns one argument: a flag with a value that is plausible, or anything.
func (g *generator) argument(odd bool) string {
	if odd && g.IntN(20) == 0 {
		return pick(g.Rand, stray)
	}
	flag := g.flags[g.IntN(len(g.flags))]
	values := append(slices.Clone(plausible[flag.Name]), byType[flag.Value.Type()]...)
	if file := g.places.of(flag.Name); file != "" {
		values = append(values, file)
	}
	if odd {
		values = append(values, hostile...)
	}
	if len(values) == 0 {
		values = []string{""}
	}
	return fmt.Sprintf("--%s=%s", flag.Name, pick(g.Rand, values))
}

func pick(random *rand.Rand, from []string) string { return from[random.IntN(len(from))] }

// longestDuration is the longest that there is: multiplied, it overflows.
const longestDuration = "2562047h47m16.854775807s"

// byType are values that may well be given to flags of a type.
var byType = map[string][]string{
	"bool":     {"true", "false", "1", "F"},
	"duration": {"1s", "0", "1500ms", "10s", "1m", "24h"},
	"int":      {"0", "1", "10", "2000"},
	"int32":    {"1", "30", "2147483647"},
	"float32":  {"-1", "20", "0.5"},
	"string":   {"", "x", "a.b"},
}

// plausible are values that may well be given to a flag.
var plausible = map[string][]string{
	"controllers":                     {"*", "foo", "icecream,foo", "*,-foo", "foo-controller", "*,-foo,-icecream", "-foo,*"},
	"leader-elect-lease-duration":     {"15s", "60s", "137s"},
	"leader-elect-renew-deadline":     {"10s", "5s"},
	"leader-elect-retry-period":       {"2s", "500ms"},
	"feature-gates":                   {"AllAlpha=true", "AllBeta=false", "ContextualLogging=true", ""},
	"kube-api-content-type":           {"application/json", "application/vnd.kubernetes.protobuf"},
	"logging-format":                  {"text", "json"},
	"vmodule":                         {"a=1", "a=1,b*=2", ""},
	"tls-min-version":                 {"VersionTLS12", "VersionTLS13", ""},
	"tls-cipher-suites":               {"TLS_AES_128_GCM_SHA256", ""},
	"tls-curve-preferences":           {"29", "23,24", ""},
	"bind-address":                    {"127.0.0.1", "::", "0.0.0.0"},
	"secure-port":                     {"0"},
	"allow-metric-labels":             {"a_b,c=d", `"m,l=v1,v2"`},
	"disabled-metrics":                {"a_total", "a,b"},
	"requestheader-allowed-names":     {"front-proxy", "a,b", ""},
	"requestheader-group-headers":     {"X-Remote-Group", "x"},
	"log-text-info-buffer-size":       {"0", "1Mi"},
	"master":                          {"", "127.0.0.1:6443", "https://[::1]:6443"},
	"authorization-kubeconfig":        {""},
	"version":                         {"false"},
	"show-hidden-metrics-for-version": {""},
}

// wrong are values that must be refused.
var wrong = map[string][]string{
	"controllers":                                  {"", "fo", "*,-fooo", "-*", "foo,-foo", "-foo,foo", "foo-controller,-foo", "-foo", "-foo,-icecream", "*,*,-", "-", "--foo", "*, foo", "\x00", "FOO", strings.Repeat("a", 10_000), strings.Repeat("foo,-foo,", 500)},
	"min-resync-period":                            {"-1s", "-1ns", "1", "x", longestDuration, "-" + longestDuration, "1e9s", ""},
	"controller-start-interval":                    {"-1s", longestDuration, "1 s"},
	"controller-shutdown-timeout":                  {"-1s", longestDuration},
	"sync-timeout":                                 {"0", "-1s", "999ms", longestDuration},
	"status-aggregation-interval":                  {"-1ms", longestDuration},
	"write-timeout":                                {"0", "-3s", "99ms"},
	"leader-elect-lease-duration":                  {"0", "-15s", "900ms", "15500ms", "1ns", longestDuration, "2147483648s"},
	"leader-elect-renew-deadline":                  {"0", "-10s", "24h", "1ns", longestDuration},
	"leader-elect-retry-period":                    {"0", "-2s", "24h", "1ns", longestDuration},
	"leader-elect-resource-lock":                   {"", "endpoints", "configmaps", "leases,x"},
	"leader-elect-resource-name":                   {"", "A", "a/b", "../x", "a b", strings.Repeat("a", 254), "a\nb"},
	"leader-elect-resource-namespace":              {"", "A", "a.b", "a/b", strings.Repeat("a", 64)},
	"leader-elect":                                 {"yes", "2", ""},
	"concurrent-foo-syncs":                         {"0", "-1", "10001", "9223372036854775808", "1.5", "x", ""},
	"concurrent-icecream-syncs":                    {"0", "1000000000"},
	"concurrent-status-aggregator-syncs":           {"0", "-9223372036854775808"},
	"kube-api-qps":                                 {"0", "-0", "NaN", "+Inf", "-Inf", "x", "1e-50"},
	"kube-api-burst":                               {"2147483648", "x"},
	"kube-api-content-type":                        {"", "text/plain", "application/yaml", "application/json;x"},
	"kubeconfig":                                   {"/nonexistent", "/", "\x00"},
	"master":                                       {"http://[::1", "https://a b", "ftp://%", "::"},
	"feature-gates":                                {"x=true", "AllAlpha=x", "AllAlpha", "=", "ContextualLogging=true,=x"},
	"logging-format":                               {"", "xml", "JSON"},
	"log-flush-frequency":                          {"0", "-5s", "x"},
	"v":                                            {"-1", "x", "4294967296", "2147483648", ""},
	"vmodule":                                      {"a", "a=x", "=1", "a=-1", "a=2147483648", "a=b=c"},
	"log-text-split-stream":                        {"x"},
	"log-json-info-buffer-size":                    {"x", "1 Mi"},
	"secure-port":                                  {"-1", "65536", "70000", "x", "99999999999999999999"},
	"bind-address":                                 {"x", "1.2.3", "1.2.3.4.5", "[::1]"},
	"tls-min-version":                              {"VersionTLS99", "1.2", "x"},
	"tls-cipher-suites":                            {"x", "TLS_AES_128_GCM_SHA256,", "tls_aes_128_gcm_sha256"},
	"tls-curve-preferences":                        {"x", "0", "-1", "99999999999"},
	"tls-sni-cert-key":                             {"", "x", "a,b,c", ":"},
	"http2-max-streams-per-connection":             {"-1", "x"},
	"authorization-always-allow-paths":             {"/a*b", "*/x", "/*/"},
	"authentication-token-webhook-cache-ttl":       {"-1s", "x"},
	"authorization-webhook-cache-authorized-ttl":   {"-1s"},
	"authorization-webhook-cache-unauthorized-ttl": {"-1ns"},
	"requestheader-username-headers":               {" ", "X-Remote-User,,"},
	"requestheader-group-headers":                  {" "},
	"requestheader-extra-headers-prefix":           {" ,a"},
	"requestheader-uid-headers":                    {" ", "x"},
	"allow-metric-labels":                          {"x", "a=b", "=", ",=x", "a,b,c=d"},
	"allow-metric-labels-manifest":                 {"/nonexistent", "/"},
	"disabled-metrics":                             {"a b", "1a", "é"},
	"show-hidden-metrics-for-version":              {"x", "99.99", "v1", "-1.0", "1.35.0.0"},
	"version":                                      {"x", "v", "v1.x"},
	"profiling":                                    {"x", "-1"},
	"warm-standby":                                 {"x", ""},
	"no-such-flag":                                 {"", "x"},
	"Kubeconfig":                                   {"x"},
	"kube_config":                                  {"x"},
}

// hostile are values that nobody gives to any flag in good faith.
var hostile = []string{
	"", " ", "-", "--", "-1", "0", "1e400", "NaN", "x", "\x00", "\xff\xfe", "a\nb", "%s%n%d", "../../etc/passwd", "/dev/null",
	"${HOME}", "$(true)", "; true", "'", `"`, `\`, "a=b", "a,b", ",", "=", "*", "-*", "true", "9223372036854775808",
	"-9223372036854775809", longestDuration, "-1ns", "1y", "0x10", "٣", "\u202e", "💥", strings.Repeat("9", 400), strings.Repeat("a,", 1000),
}

// stray are arguments that are no flags of the command.
var stray = []string{
	"foo", "", " ", "-", "--", "---", "-x", "-kubeconfig=x", "-kubeconfig", "-controllers=*", "--no-such-flag", "--no-such-flag=1", "--=", "-=", "--controllers",
	"-v", "-v=x", "-vv", "-1", "--v", "status", "help", "*", "--Controllers=*", "—kubeconfig=x", "\x00", "-\x00", "--\xff",
}
