// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// pages are the pages with commands, in the order in which an operator might use them:
// upgrade.md removes all.
var pages = []string{
	"manifests/docs/migrate.md", "README.md", "manifests/README.md", "manifests/docs/install.md", "manifests/docs/gitops.md", "manifests/docs/release.md",
	"manifests/docs/preflight.md", "manifests/docs/objects.md", "manifests/docs/plugin.md", "manifests/docs/dashboard.md", "manifests/docs/operate.md", "manifests/docs/scaling.md",
	"manifests/docs/security.md", "manifests/docs/troubleshooting.md", "manifests/docs/leadership.md", "manifests/monitoring/README.md",
	"manifests/docs/policies.md", // has none yet
	"manifests/docs/configure.md", "manifests/docs/control.md", "manifests/docs/3am.md", "manifests/docs/upgrade.md",
}

// preamble makes the commands of a page that cannot run here succeed, with the reason, and
// counts the others.
const preamble = `set -o errexit -o nounset -o pipefail
not_here() { echo "not run: $1" >&2; }
make() { not_here "tested elsewhere"; echo sha256:0; }
go() { not_here "tested elsewhere"; }
skopeo() { not_here "needs a registry"; }
oras() { not_here "needs a registry"; }
sha256sum() { not_here "needs a release"; }
jq() { not_here "needs a release"; }
curl() { not_here "needs a port-forward"; }
kubectl() {
  case "$*" in
    scm*) not_here "tested in hack/test/e2e/operations" ;;
    logs*|port-forward*|exec*) not_here "needs a kubelet" ;;
    top*) not_here "needs metrics-server" ;;
    "delete pod "*) not_here "needs a leader in a Pod" ;;
    "create namespace team-a") not_here "exists already" ;;
    *manifests/monitoring*) not_here "needs prometheus-operator" ;;
    *) echo "$*" >>"${RAN}"; command kubectl "$@" ;;
  esac
}
`

// placeholders are replaced in commands.
var placeholders = strings.NewReplacer("<namespace>", "team-a", "<name>", "web", "<leader>", "leader",
	"bin/sample-controller-manager --kubeconfig", "true bin/sample-controller-manager --kubeconfig", // it would run forever
	"plan --kubeconfig=$HOME/.kube/config", `plan --kubeconfig="${KUBECONFIG}" || [ $? -eq 2 ]`) // 2: something would change

// TestCommands runs the code blocks of each page in a directory with manifests and bin, and
// applies each overlay that the page shows.
func TestCommands(t *testing.T) {
	// Some commands take rights from the daemon, or delete what it watches.
	framework.ExpectDenials(t, func(auditv1.Event) bool { return true })
	framework.ExpectUnknownKinds()
	framework.FreeLease(t)
	framework.StartReplica(t).Ready()
	framework.Kubectl(t, "create", "namespace", "team-a")
	framework.Kubectl(t, "create", "rolebinding", "jane", "-n", "team-a", "--clusterrole=edit", "--user=jane")
	framework.Foos.CreateNaming(t, "team-a", "my-foo", "web")
	framework.Foos.WaitReady(t, "team-a", "my-foo", 1)
	// objects.md deletes old-web, and upgrade.md older-web.
	framework.Foos.CreateNaming(t, "team-a", "renamed", "older-web")
	framework.Foos.WaitReady(t, "team-a", "renamed", 1)
	for _, name := range []string{"old-web", "new-web"} {
		framework.Foos.Patch(t, "team-a", "renamed", `{"spec":{"deploymentName":"`+name+`"}}`)
		framework.WaitDeployment(t, "team-a", name)
	}
	framework.Foos.WaitReady(t, "team-a", "renamed", 1)
	commands := filepath.Join(t.TempDir(), "commands")
	for _, page := range pages {
		if page == "manifests/docs/3am.md" { // gives web back to its Foo
			framework.Kubectl(t, "-n", "team-a", "patch", "deployment", "web", "--type=json", `-p=[{"op":"remove","path":"/metadata/ownerReferences"}]`)
			framework.Foos.WaitSays(t, "team-a", "my-foo", "Stalled", "DeploymentConflict", "ownerReferences")
		}
		if !t.Run(strings.ReplaceAll(page, "/", "_"), func(t *testing.T) { runPage(t, page, commands) }) {
			break
		}
		if owner := metav1.GetControllerOf(framework.Deployment(t, "team-a", "web")); page == "manifests/docs/3am.md" &&
			(owner == nil || owner.Name != "my-foo") {
			t.Errorf("the owner of the Deployment is %v after %s, want my-foo", owner, page)
		}
	}
	// Only the former Deployments were deleted.
	if got, want := strings.Fields(framework.Kubectl(t, "-n", "team-a", "get", "deployments", "older-web", "old-web", "new-web", "web", "--ignore-not-found", "-o=name")),
		[]string{"deployment.apps/new-web", "deployment.apps/web"}; !slices.Equal(got, want) {
		t.Errorf("after all pages there are %q, want %q", got, want)
	}
	ran, err := os.ReadFile(commands)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(ran), "\n"); n < 40 {
		t.Errorf("%d kubectl commands ran, want at least 40:\n%s", n, ran)
	}
}

// TestEachPageHasItsCommandsRun checks that no page with commands is left out.
func TestEachPageHasItsCommandsRun(t *testing.T) {
	for _, pattern := range []string{"README.md", "docs/*.md", "monitoring/README.md"} {
		files, err := filepath.Glob(framework.Manifests(t, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			page, err := filepath.Rel(framework.Manifests(t, ".."), file)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(pages, page) {
				t.Errorf("%s is not in the list of pages", page)
			}
		}
	}
}

// runPage runs the code blocks of a page. What they run is appended to the file commands.
func runPage(t *testing.T, page, commands string) {
	raw, err := os.ReadFile(framework.Manifests(t, filepath.Join("..", page)))
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "manifests"), os.DirFS(framework.Manifests(t, ""))); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(framework.Binary(), filepath.Join(dir, "bin", framework.DaemonName)); err != nil {
		t.Fatal(err)
	}
	// As install.md makes it.
	kubeconfig, err := framework.Cluster().ServiceAccountKubeconfig(t.Context(), framework.DaemonName,
		framework.DaemonName)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Link(kubeconfig, filepath.Join(dir, "scm.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	// The page may show the file after the command that applies it.
	kustomization := "resources: [manifests/base]\nimages: [{name: sample-controller-manager, newTag: other}]\n"
	if shown := overlay.FindStringSubmatch(text); shown != nil {
		kustomization = shown[1]
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		t.Fatal(err)
	}
	script := blocks(text)
	if out, err := bash(t.Context(), dir, commands, preamble+placeholders.Replace(script)); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// overlay is a block with a kustomization.
var overlay = regexp.MustCompile("(?ms)^```yaml\n# kustomization.yaml\n(.*?)^```$")

// blocks returns the commands of a page: its sh blocks, what follows a prompt in its console
// blocks, and for each overlay that it shows, the command that applies it. All run in the same
// shell, so that later blocks can use variables and functions of earlier ones.
func blocks(text string) string {
	text = overlay.ReplaceAllStringFunc(text, func(block string) string {
		content := overlay.FindStringSubmatch(block)[1]
		command := "kubectl apply -k ."
		if strings.Contains(content, "manifests/monitoring") { // needs prometheus-operator
			command = "kubectl kustomize ."
		}
		return "```sh\ncat >kustomization.yaml <<'EOF'\n" + content + "EOF\n" + command + "\n```"
	})
	var script strings.Builder
	for _, block := range regexp.MustCompile("(?ms)^ *```(sh|console)\n(.*?)^ *```$").FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[2]) {
			command, prompted := strings.CutPrefix(line, "$ ")
			if block[1] == "sh" || prompted {
				script.WriteString(command)
			}
		}
	}
	return script.String()
}

// bash runs a script as a cluster admin, with kubectl in its PATH, and returns its output.
func bash(ctx context.Context, dir, commands, script string) (string, error) {
	paths, err := cluster.Binaries(ctx, os.Stderr, "kubectl")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute) // so that the output of a command that hangs is shown
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-x", "-c", script)
	c.Dir = dir
	c.Env = append(os.Environ(), "RAN="+commands, "KUBECONFIG="+framework.Cluster().Kubeconfig,
		"PATH="+filepath.Dir(paths["kubectl"])+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("running the commands: %w", err)
	}
	return string(out), err
}
