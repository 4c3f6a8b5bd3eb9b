// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/process"
)

//go:embed audit-policy.yaml
var auditPolicy []byte

// startControlPlane starts etcd and kube-apiserver, and sets the admin's configuration and
// kubeconfig once their addresses are known.
func (c *Cluster) startControlPlane(o Options) error {
	etcd, apiServer := &envtest.Etcd{}, &envtest.APIServer{}
	c.plane.Etcd, c.plane.APIServer = etcd, apiServer
	c.plane.KubectlPath = c.KubectlPath

	etcd.DataDir, apiServer.CertDir = filepath.Join(c.Dir, "etcd"), c.certFile("")
	etcd.StartTimeout, apiServer.StartTimeout = startTimeout, startTimeout
	etcd.StopTimeout, apiServer.StopTimeout = stopTimeout, stopTimeout
	for _, dir := range []string{etcd.DataDir, apiServer.CertDir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	etcdLog, err := c.group.OpenLog("etcd")
	if err != nil {
		return err
	}
	apiServerLog, err := c.group.OpenLog("kube-apiserver")
	if err != nil {
		return err
	}
	// They stay open, so that a restart appends to them.
	etcd.Out, etcd.Err = etcdLog, etcdLog
	apiServer.Out, apiServer.Err = apiServerLog, apiServerLog

	if etcd.Path, err = c.group.Shim("etcd", c.paths["etcd"]); err != nil {
		return err
	}
	if apiServer.Path, err = c.group.Shim("kube-apiserver", c.paths["kube-apiserver"]); err != nil {
		return err
	}
	if err := c.configureAPIServer(o); err != nil {
		return err
	}
	if err := c.plane.Start(); err != nil {
		return fmt.Errorf("%w%s%s", err, process.Tail(etcdLog.Name()), process.Tail(apiServerLog.Name()))
	}

	if c.Kubeconfig, err = c.addUser("admin", "admin", "system:masters"); err != nil {
		return err
	}
	c.config, err = loadConfig(c.Kubeconfig)
	return err
}

// RestartAPIServer stops kube-apiserver, which first answers its requests in flight, and
// starts it again with the same address, data, certificates and audit log. It returns when the
// API server is ready. Stop must not be called concurrently.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	apiServer := c.plane.APIServer
	if err := apiServer.Stop(); err != nil {
		return fmt.Errorf("stopping kube-apiserver: %w", err)
	}
	if err := apiServer.Start(); err != nil {
		return fmt.Errorf("restarting kube-apiserver: %w%s", err, process.Tail(c.group.LogPath("kube-apiserver")))
	}
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("making the admin's client: %w", err)
	}
	return c.await(ctx, client, apiServerReady)
}

// configureAPIServer sets the flags that differ from envtest's.
func (c *Cluster) configureAPIServer(o Options) error {
	flags := c.plane.APIServer.Configure().
		Set("enable-admission-plugins", "OwnerReferencesPermissionEnforcement").
		// By default it would be the address of a network interface, which a machine may not
		// have. The endpoints of the Service default/kubernetes may not be on the loopback
		// network.
		Set("advertise-address", "127.0.0.1").
		Set("endpoint-reconciler-type", "none").
		// Otherwise it would wait up to a minute at shutdown for clients to end their watches.
		Set("shutdown-watch-termination-grace-period", "1s")
	if o.Nodes > 0 {
		flags.Disable("disable-admission-plugins")
	}
	if err := c.configureFrontProxy(flags); err != nil {
		return err
	}
	if o.AuditLog {
		policy, content := filepath.Join(c.Dir, "audit-policy.yaml"), auditPolicy
		if o.AuditPolicy != nil {
			content = o.AuditPolicy
		}
		if err := os.WriteFile(policy, content, 0o600); err != nil {
			return fmt.Errorf("writing the audit policy: %w", err)
		}
		c.AuditLog = filepath.Join(c.Dir, "audit.log")
		flags.
			Set("audit-policy-file", policy).
			Set("audit-log-path", c.AuditLog).
			Set("audit-log-mode", "blocking").
			// In megabytes. Readers expect a single file.
			Set("audit-log-maxsize", "100000")
	}
	for name, value := range o.APIServerFlags {
		flags.Set(name, value)
	}
	return nil
}

// configureFrontProxy sets the CA of a front proxy, as every cluster has it. Without it,
// servers that delegate authentication log errors forever. No client has a certificate from
// this CA.
func (c *Cluster) configureFrontProxy(flags *envtest.Arguments) error {
	content, _, err := cert.GenerateSelfSignedCertKey("front-proxy", nil, nil)
	if err != nil {
		return fmt.Errorf("making the front proxy's CA: %w", err)
	}
	path := c.certFile("front-proxy-ca.crt")
	flags.
		Set("requestheader-client-ca-file", path).
		Set("requestheader-allowed-names", "front-proxy-client").
		Set("requestheader-username-headers", "X-Remote-User").
		Set("requestheader-group-headers", "X-Remote-Group").
		Set("requestheader-extra-headers-prefix", "X-Remote-Extra-")
	return os.WriteFile(path, content, 0o600)
}

// addUser writes <file>.kubeconfig with a client certificate of a new user and returns its
// path.
func (c *Cluster) addUser(file, user string, groups ...string) (kubeconfig string, err error) {
	added, err := c.plane.AddUser(envtest.User{Name: user, Groups: groups}, nil)
	if err != nil {
		return "", fmt.Errorf("adding the user %s: %w", user, err)
	}
	content, err := added.KubeConfig()
	if err != nil {
		return "", fmt.Errorf("making the kubeconfig of %s: %w", user, err)
	}
	path := filepath.Join(c.Dir, file+".kubeconfig")
	return path, os.WriteFile(path, content, 0o600)
}

// certFile returns the path of a file in kube-apiserver's directory.
func (c *Cluster) certFile(name string) string {
	return filepath.Join(c.Dir, "kube-apiserver", name)
}

// WithoutStorage stops kube-apiserver and etcd, calls change with etcd's data directory, and
// starts both again with the same addresses. It returns when the API server is ready. A change
// that keeps a copy of the directory makes a backup, one that puts it back restores it. Stop
// must not be called concurrently.
func (c *Cluster) WithoutStorage(ctx context.Context, change func(dir string) error) error {
	etcd := c.plane.Etcd
	if err := c.plane.APIServer.Stop(); err != nil {
		return fmt.Errorf("stopping kube-apiserver: %w", err)
	}
	if err := etcd.Stop(); err != nil {
		return fmt.Errorf("stopping etcd: %w", err)
	}
	if err := change(etcd.DataDir); err != nil {
		return err
	}
	if err := etcd.Start(); err != nil {
		return fmt.Errorf("restarting etcd: %w%s", err, process.Tail(c.group.LogPath("etcd")))
	}
	return c.RestartAPIServer(ctx)
}
