// Package e2e drives the real binary with real clients and real servers, as its
// users do: it imports nothing of ours.
//
//	.ci/e2e-setup            # once: what is driven, each in one exact version
//	go test ./e2e            # what is not installed is skipped by name
//
// CAPGATE_E2E names the folder that .ci/e2e-setup fills, where it is not the one
// below the user's cache. CAPGATE_BIN names a binary to test instead of one built
// from this tree. With CAPGATE_REQUIRE=all nothing is skipped. All of it stays on
// this machine: models are scripted, servers and clients are local processes.
//
// What the conformance suite says of a server directly is measured in the same
// run as what it says through the gateway, and compared check by check.
//
// # Limitations
//
// The tests run where processes have groups and signals, not on Windows. Clients
// that need a display or an account (editors, desktop programs) are not driven.
// What a client shows its user is not looked at, only what it sends and receives.
package e2e
