// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"samplecontroller.io/controller-manager/tolerant"
)

// A generated client lists all objects that can be decoded, and reports the others.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"3"},"items":[
			{"metadata":{"name":"good","resourceVersion":"1"},"data":{"color":"blue"}},
			{"metadata":{"name":"bad","resourceVersion":"2"},"data":["blue"]}]}`)
	}))
	defer server.Close()

	client, err := tolerant.RESTClientFor(&rest.Config{Host: server.URL}, corev1.SchemeGroupVersion, scheme.Scheme)
	if err != nil {
		fmt.Println(err)
		return
	}
	configMaps, err := corev1client.New(client).ConfigMaps("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, configMap := range configMaps.Items {
		if err := tolerant.DecodeError(&configMap); err != nil {
			fmt.Printf("%s cannot be decoded: %v\n", configMap.Name, err)
			continue
		}
		fmt.Println(configMap.Name, configMap.Data)
	}
	// Output:
	// good map[color:blue]
	// bad cannot be decoded: data: array where map[string]string is expected
}
