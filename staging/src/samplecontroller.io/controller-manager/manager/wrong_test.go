// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import "strings"

// longestDuration is the longest possible duration. It overflows if multiplied.
const longestDuration = "2562047h47m16.854775807s"

// wrong are values that must be rejected.
var wrong = map[string][]string{
	"controllers": {"", "fo", "*,-fooo", "-*", "foo,-foo", "-foo,foo", "foo-controller,-foo", "-foo", "-foo,-icecream", "*,*,-", "-", "--foo", "*, foo", "\x00", "FOO",
		strings.Repeat("a", 10_000), strings.Repeat("foo,-foo,", 500)},
	"min-resync-period":                            {"1", "x", "1e9s", ""},
	"controller-start-interval":                    {"1 s"},
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
	"kube-api-qps":                                 {"0", "-0", "-3", "-0.5", "NaN", "+Inf", "-Inf", "x", "1e-50"},
	"kube-api-burst":                               {"2147483648", "x", "-1"},
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
