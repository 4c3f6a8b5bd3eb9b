// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
)

// failureProgram has a controller that owns a Secret for each Widget with an image. The status says
// whether a write fails.
func failureProgram(opts ...func(*controller.Builder[*Widget])) manager.Program {
	p := ensureProgram()
	p.Controllers = []controller.Descriptor{{
		Name: "test-controller", Workers: 1,
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			widgets := controller.For[*Widget](c, controller.MayPatchStatus())
			secrets := controller.Owns[*corev1.Secret](widgets, controller.MayDelete())
			for _, opt := range opts {
				opt(widgets)
			}
			return widgets.Reconcile(func(ctx context.Context, r *controller.Request[*Widget]) error {
				w, ok := r.Object()
				if !ok {
					return nil
				}
				if len(w.Spec.Containers) == 0 {
					return secrets.Delete(ctx, r, w.Name)
				}
				image := w.Spec.Containers[0].Image
				_, err := secrets.Ensure(ctx, r, w.Name, func(s *corev1.Secret) {
					s.Data = map[string][]byte{"image": []byte(image)}
				})
				if err != nil {
					return err
				}
				w.Status.Image = image
				return r.UpdateStatus(ctx, w)
			})
		},
	}}
	return p
}

// showing makes the status show the failing write, like many kinds do.
func showing(b *controller.Builder[*Widget]) {
	b.Failing(func(w *Widget, f *controller.Failure) {
		for _, condition := range []string{"Reconciling", "Stalled"} {
			if f == nil || f.Condition() != condition {
				meta.RemoveStatusCondition(&w.Status.Conditions, condition)
			}
		}
		if f != nil {
			meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
				Type: f.Condition(), Status: metav1.ConditionTrue, Reason: f.Reason, Message: f.Message,
				ObservedGeneration: w.Generation, LastTransitionTime: f.Since,
			})
		}
	})
}

// widget returns a Widget with an image, none if it is empty.
func widget(ns, image string) *Widget {
	w := &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}}
	if image != "" {
		w.Spec.Containers = []corev1.Container{{Name: "app", Image: image}}
	}
	return w
}

// conditions returns the conditions of the Widget that are True, such as "Stalled WriteDenied".
func conditions(e *Env, ns string) (all []string, message string) {
	e.t.Helper()
	w, _ := Get[*Widget](e, ns, "a")
	for _, c := range w.Status.Conditions {
		all, message = append(all, c.Type+" "+c.Reason), c.Message
	}
	return all, message
}

// count returns the number of writes that begin so.
func count(writes []string, prefix string) (n int) {
	for _, w := range writes {
		if strings.HasPrefix(w, prefix) {
			n++
		}
	}
	return n
}

// runFailing runs a test in memory without leader election, whose requests take most of the time.
func runFailing(t *testing.T, p manager.Program, body func(*testing.T, *Env)) {
	t.Helper()
	Run(t, p, body, "--leader-elect=false")
}

func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// errHang stands for an answer that does not come before the client gives up.
var errHang = errors.New("hang")

// rejecting rejects the writes that begin so with an error.
func rejecting(e *Env, prefix string, err error) {
	e.BeforeWrite(func(write string, r *http.Request) error {
		if !strings.HasPrefix(write, prefix) {
			return nil
		}
		if errors.Is(err, errHang) {
			<-r.Context().Done()
			return context.Cause(r.Context())
		}
		return err
	})
}

const statusPatch = "patch widgets/status.test.example.com ns/a"

func webhookDenial(code int32, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Message: `admission webhook "w.example.com" denied the request: ` + message,
	}}
}

var (
	secretsResource = corev1.Resource("secrets")
	errQuota        = apierrors.NewForbidden(secretsResource, "a", errors.New("exceeded quota: q, requested: secrets=1"))
)

// TestDeniedWrite denies writes on their merits. That is reported at once, and tried again slowly.
func TestDeniedWrite(t *testing.T) {
	policy := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid,
		Message: "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: "no"}}},
	}}
	invalid := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Secret").GroupKind(), "a", nil)
	invalid.ErrStatus.Details.Causes = []metav1.StatusCause{{Field: "data"}}
	for name, test := range map[string]struct {
		err      error
		longTerm int // tries in 10 minutes
		message  string
	}{
		"quota":                {errQuota, 24, "creating Secret ns/a was denied: secrets \"a\" is forbidden: exceeded quota: q, requested: secrets=1"},
		"policy":               {policy, 24, "creating Secret ns/a was denied: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"},
		"webhook":              {webhookDenial(403, "no"), 24, `creating Secret ns/a was denied: admission webhook "w.example.com" denied the request: no`},
		"webhook, as conflict": {webhookDenial(409, "no"), 24, "denied the request"},
		"webhook, as missing":  {webhookDenial(404, "no"), 24, "denied the request"},
		"webhook, as invalid":  {webhookDenial(422, "no"), 24, "denied the request"},
		"invalid":              {invalid, 10, "creating Secret ns/a was denied: Secret \"a\" is invalid"},
		"too large":            {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), 10, "limit is 3145728"},
	} {
		t.Run(name, func(t *testing.T) {
			runFailing(t, failureProgram(showing), func(t *testing.T, e *Env) {
				rejecting(e, "create secrets", test.err)
				e.Create(widget("ns", "v1"))
				sleep(2 * time.Second)
				first := e.Writes()
				if c, s := count(first, "create"), count(first, statusPatch); c != 2 || s != 1 {
					t.Errorf("%d creates and %d statuses in 2 s, want 2 and 1: %q", c, s, first)
				}
				all, message := conditions(e, "ns")
				expect(t, "conditions", all, "Stalled WriteDenied")
				if !strings.Contains(message, test.message) {
					t.Errorf("message %q, want %q", message, test.message)
				}
				expect(t, "Events", e.Events(), "Warning WriteDenied "+message)
				for i := range 5 { // events of the object do not cause tries
					Update(e, "ns", "a", func(w *Widget) { w.Labels = map[string]string{"touched": string(rune('a' + i))} })
				}
				sleep(10*time.Minute - 2*time.Second - time.Millisecond)
				if c, s := count(e.Writes(), "create")+2, count(first, statusPatch); c != test.longTerm || s != 1 {
					t.Errorf("%d creates and %d statuses in 10 minutes, want %d and 1", c, s, test.longTerm)
				}
				expect(t, "later Events", e.Events())
				expectRecovery(t, e, 5*time.Minute)
			})
		})
	}
}

// expectRecovery lets all writes succeed. The status then says so, and nothing more is written.
func expectRecovery(t *testing.T, e *Env, within time.Duration) {
	t.Helper()
	e.BeforeWrite(nil)
	e.Writes()
	sleep(within)
	expect(t, "writes after the cause is gone", e.Writes(), "create secrets ns/a", statusPatch)
	all, _ := conditions(e, "ns")
	expect(t, "conditions after the cause is gone", all)
	sleep(time.Minute)
	expect(t, "later writes", e.Writes())
	expect(t, "Events after the cause is gone", e.Events())
}

// TestFailingWrite makes writes fail for causes that may pass.
func TestFailingWrite(t *testing.T) {
	errored := webhookDenial(500, "lookup failed")
	for name, test := range map[string]struct {
		err     error
		message string
	}{
		"500":             {apierrors.NewInternalError(errors.New("failed calling webhook")), "the API server answers 500: Internal error occurred: failed calling webhook"},
		"503":             {apierrors.NewServiceUnavailable("down"), "the API server answers 503: down"},
		"503, later":      {apierrors.NewServerTimeout(secretsResource, "create", 1), "the API server answers 500: "},
		"429":             {apierrors.NewTooManyRequests("later", 1), "the API server limits the rate of requests: later"},
		"504":             {apierrors.NewTimeoutError("slow", 0), "no answer within --write-timeout; an admission webhook for secrets may hang"},
		"no connection":   {errors.New("connection refused"), "no answer from the API server: connection refused"},
		"conflict":        {apierrors.NewConflict(corev1.Resource("resourcequotas"), "q", errors.New("changed")), "each try conflicts with a change by another client: "},
		"exists":          {apierrors.NewAlreadyExists(secretsResource, "a"), "each try conflicts with a change by another client: "},
		"credentials":     {apierrors.NewUnauthorized("who are you?"), "the API server answers 401: who are you?"},
		"webhook, failed": {errored, "the API server answers 500: admission webhook"},
	} {
		t.Run(name, func(t *testing.T) {
			runFailing(t, failureProgram(showing), func(t *testing.T, e *Env) {
				rejecting(e, "create secrets", test.err)
				e.Create(widget("ns", "v1"))
				sleep(9 * time.Second)
				all, _ := conditions(e, "ns")
				expect(t, "conditions within 10 s", all)
				expect(t, "Events within 10 s", e.Events())
				sleep(46 * time.Second)
				all, message := conditions(e, "ns")
				expect(t, "conditions after 55 s", all, "Reconciling WriteFailing")
				if want := "creating Secret ns/a keeps failing: " + test.message; !strings.HasPrefix(message, want) {
					t.Errorf("message %q, want %q", message, want)
				}
				expect(t, "Events after 55 s", e.Events(), "Warning WriteFailing "+message)
				sleep(20 * time.Second) // the first try takes up to 10 s, because client-go repeats requests
				all, _ = conditions(e, "ns")
				expect(t, "conditions after a minute", all, "Stalled WriteFailed")
				sleep(3 * time.Minute)
				events, writes := e.Events(), e.Writes()
				expect(t, "Events after a minute", events, "Warning WriteFailed "+message)
				if n := count(writes, statusPatch); n != 2 {
					t.Errorf("%d statuses are written, want 2", n)
				}
				expectRecovery(t, e, 40*time.Second)
			})
		})
	}
}
