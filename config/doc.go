// Package config turns capgate.yml into values, strictly.
//
// [Find] says which file is meant, [Load] reads it and [Parse] is the same
// without touching the disk. A [Config] is plain values; whoever builds agents,
// gates and gateways from them constructs those itself.
//
//	file, err := config.Find("", cwd, os.Getenv("XDG_CONFIG_HOME"), home)
//	cfg, findings, err := config.Load(file, capability.View{Cwd: cwd, Home: home, FS: hostfs.FS{}})
//
// [LoadMappings] reads what a configuration names besides itself: the mappings in
// its folders. Secrets stay where they are; a [Secret] only says where.
//
// What is wrong in a file is an [*Error] with its place and a hint, all of them
// at once, and nothing of the file is loaded. [Schema] lists what may be written,
// and what a later version will serve: those sections are refused by name, so
// that nobody believes in a limit that is not enforced.
//
// [ReadSettings] reads how the process itself runs: flags over CAPGATE_*
// variables over defaults. Policy is never among them. The library behind it
// lower-cases keys and splits them at dots, and the environment of a process is
// not a file that can be reviewed.
//
// # Limitations
//
// The place of a syntax error is its line; the YAML library does not tell the
// column. An unknown anchor is placed at the first text that looks like it.
//
// Whether a folder, a program or a secret is really there shows when it is used:
// [Parse] looks at nothing but the file. A mapping that does not stand in one of
// the folders of mappings: is found out by [LoadMappings], and a tool that no
// server has by whoever runs the tests.
//
// [Live] watches capgate.yml alone, not the mappings.
//
// Requirements in tests: are read for their form only. What they mean depends on
// the root of the agent they are asked about, so that whoever runs the tests
// reads them again.
package config
