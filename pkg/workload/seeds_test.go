// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

// fuzzSeeds are what FuzzSync begins with.
var fuzzSeeds = []struct{ object, deployments string }{
	{`{"spec":{"deploymentName":"web"}}`, ``},
	{`{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","metadata":{"generation":3,"uid":"u"},"spec":{"deploymentName":"web","replicas":3,"image":"nginx:1"}}`,
		`{"apiVersion":"apps/v1","kind":"DeploymentList","items":[` + ownedDeployment("web", "u") + `,` + ownedDeployment("old", "u") + `,` + ownedDeployment("foreign", "v") + `]}`},
	{`{"apiVersion":"controller.nicoleh.io/v1alpha1","kind":"Icecream","metadata":{"uid":"u"},"spec":{"deploymentName":"web","replicas":0}}`,
		`{"apiVersion":"apps/v1","kind":"DeploymentList","items":[` + ownedDeployment("web", "v") + `]}`},
	{`{"spec":{"deploymentName":"","replicas":-1,"image":" "}}`, ``},
	{`{"spec":{"deploymentName":"A_","replicas":2147483647}}`, ``},
	{`{"spec":{"deploymentName":["web"]}}`, ``},
	{`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a/b"]},"spec":{"deploymentName":"web"}}`, ``},
	{`{"spec":{"deploymentName":"web"},"status":{"observedGeneration":7,"selector":"a=b","conditions":[{"type":"Ready","status":"True","reason":"Available","message":"","lastTransitionTime":null},{"type":"Mine","status":"x"}]}}`,
		`{"apiVersion":"apps/v1","kind":"DeploymentList","items":[{"metadata":{"name":"web","uid":"w","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a/b"]},"spec":{"selector":{"matchLabels":{"app":"nginx","controller":"example"}},"template":{}}},
		{"metadata":{"name":"old","uid":"o"},"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"Exists"}]},"template":{"spec":{"containers":[{"name":"nginx","image":"x"},{"name":"nginx"}]}}},"status":{"availableReplicas":-1,"observedGeneration":-5}}]}`},
}

func ownedDeployment(name, uid string) string {
	return `{"metadata":{"name":"` + name + `","uid":"uid-` + name + `","generation":2,"ownerReferences":[{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","name":"example","uid":"` + uid +
		`","controller":true,"blockOwnerDeletion":true}]},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"nginx","controller":"example"}},` +
		`"template":{"metadata":{"labels":{"app":"nginx","controller":"example"}},"spec":{"containers":[{"name":"nginx","image":"nginx:latest"}]}}},` +
		`"status":{"observedGeneration":1,"replicas":1,"availableReplicas":1,"conditions":[{"type":"ReplicaFailure","status":"True","message":"no"}]}}`
}
