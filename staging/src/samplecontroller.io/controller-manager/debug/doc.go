// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package debug tells what each controller of a process is doing, and why not:
//
//	/debug/controllers                             all controllers
//	/debug/controllers/<name>                      one of them, by name or alias, with more of its keys
//	/debug/controllers/<name>/<namespace>/<object> what one does about one object
//
// [Handler] serves the pages. A client prints one like this:
//
//	response, err := client.Get(server + debug.Path + "?format=json")
//	if err != nil {
//		return err
//	}
//	defer response.Body.Close()
//	var report debug.Report
//	if err := json.NewDecoder(response.Body).Decode(&report); err != nil {
//		return err
//	}
//	debug.PrintReport(os.Stdout, report)
//	return nil
//
// It answers in text for people, in JSON to who asks for it by the Accept header or by
// ?format=json. What it tells is bounded: each list has at most ?limit= entries, 10
// unless given, 200 at most, and says how many there are in all; an error has at most
// 500 characters. It shows names, states, counts, errors and what controllers say of an
// object ([Explanation]), never objects as a whole.
//
// It is for those who may see the page: put it behind authorisation, as package server
// does.
package debug
