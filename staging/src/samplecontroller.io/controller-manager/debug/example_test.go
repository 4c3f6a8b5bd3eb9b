// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"samplecontroller.io/controller-manager/debug"
)

// printReport prints what the controllers of a process are doing.
func printReport(client *http.Client, server string) error {
	response, err := client.Get(server + debug.Path + "?format=json")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var report debug.Report
	if err := json.NewDecoder(response.Body).Decode(&report); err != nil {
		return err
	}
	debug.PrintReport(os.Stdout, report)
	return nil
}

// The client must be authorized to get /debug/controllers.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"process":%q,"time":"2026-01-02T03:04:05Z","leader":"nobody leads"}`, r.URL.Path)
	}))
	defer server.Close()
	if err := printReport(server.Client(), server.URL); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Process: /debug/controllers
	// Time:    2026-01-02T03:04:05Z
	// Leader:  nobody leads
	//
	// CONTROLLER   STATE   FOR   RUNNING   WAITING   DELAYED   FAILING   LAST SUCCESS   REASON
}
