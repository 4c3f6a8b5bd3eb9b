module samplecontroller.io/sample-controller-manager/hack/tools/lint

go 1.26.0

toolchain go1.26.8

require (
	github.com/OpenPeeDeeP/depguard/v2 v2.3.0
	github.com/gordonklaus/ineffassign v0.2.0
	golang.org/x/tools v0.52.0
	honnef.co/go/tools v0.8.2
	sigs.k8s.io/kube-api-linter v0.0.0-20260716143926-092fe0c72997
	sigs.k8s.io/logtools v0.10.1
)

require (
	github.com/BurntSushi/toml v1.6.0 // indirect
	github.com/gobwas/glob v1.0.0 // indirect
	github.com/golangci/misspell v0.8.0 // indirect
	github.com/google/renameio/v2 v2.0.2 // indirect
	github.com/rogpeppe/go-internal v1.15.0 // indirect
	golang.org/x/exp v0.0.0-20240506185415-9bf2ced13842 // indirect
	golang.org/x/exp/typeparams v0.0.0-20250911091902-df9299821621 // indirect
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/term v0.45.0 // indirect
	k8s.io/apimachinery v0.32.3 // indirect
	k8s.io/gengo/v2 v2.0.0-20250922181213-ec3ebc5fd46b // indirect
	k8s.io/utils v0.0.0-20241104100929-3ea5e8cea738 // indirect
	mvdan.cc/editorconfig v0.3.0 // indirect
	mvdan.cc/sh/v3 v3.14.1 // indirect
	sigs.k8s.io/yaml v1.4.0 // indirect
)

tool (
	github.com/golangci/misspell/cmd/misspell
	mvdan.cc/sh/v3/cmd/shfmt
)
