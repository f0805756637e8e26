package capability

// The keys that several verbs share.
var (
	inKey      = Key{"in", RootKey, "in"}
	pathsKey   = Key{"paths", PathKey, "path"}
	hostsKey   = Key{"hosts", HostKey, "host"}
	classesKey = Key{"classes", NameKey, "class"}
	recordsKey = Key{"paths", RecordKey, "path"}
	idKey      = Key{"id", IDKey, "id"}
	idsKey     = Key{"ids", IDKey, "id"}
	keysKey    = Key{"keys", NameKey, "key"}
	ryeKey     = Key{"ids", DottedKey, "id"}
)

// catalogue is the closed list of verbs that everything reads: the parsers, the
// picker, doctor, the documentation. What is not here cannot be granted.
var catalogue = [...]Entry{
	{"records.read", Low, nil, "read any record", bareAll, ""},
	{"records.create", Low, []Key{classesKey}, "create records", bareAll, "classes"},
	{"records.update", Medium, []Key{classesKey, recordsKey}, "change records", bareAll, "classes"},
	{"records.delete", High, []Key{classesKey}, "delete records", bareAll, "classes"},

	{"agent.create", High, []Key{idKey}, "create agents", bareAll, "id"},
	{"agent.update", Medium, []Key{idKey, idsKey, recordsKey}, "change agent records, without their authority", bareAll, "ids"},
	{"agent.delete", High, []Key{idKey, idsKey}, "delete agents", bareAll, "ids"},
	{"agent.grant", High, []Key{idKey}, "pass on authority to other agents", bareAll, "id"},
	{"agent.discover", Low, nil, "find agents by what they can do", bareAll, ""},

	{"fs.read", Medium, []Key{inKey, pathsKey}, "read files and list folders", bareNothing, "paths"},
	{"fs.write", High, []Key{inKey, pathsKey}, "create and change files", bareNothing, "paths"},
	{"fs.delete", High, []Key{inKey, pathsKey}, "delete files", bareNothing, "paths"},

	{"net.get", Medium, []Key{hostsKey}, "fetch from hosts (GET and HEAD)", bareNothing, "hosts"},
	{"net.post", High, []Key{hostsKey}, "send to hosts (POST)", bareNothing, "hosts"},
	{"net.put", High, []Key{hostsKey}, "replace on hosts (PUT)", bareNothing, "hosts"},
	{"net.delete", High, []Key{hostsKey}, "delete on hosts (DELETE)", bareNothing, "hosts"},
	{"net.connect", High, []Key{hostsKey}, "open raw connections to host:port", bareNothing, "hosts"},

	{"proc.exec", High, []Key{inKey, {"cmds", CmdKey, "argv"}, {"patterns", ArgvKey, "argv"}}, "run programs, argument by argument", bareNothing, ""},
	{"proc.eval", High, []Key{inKey}, "run shell command lines", bareNothing, ""},
	{"sandbox.exec", High, nil, "run code in a throw-away sandbox", bareAll, ""},

	{"tool.invoke", Medium, []Key{{"tools", NameKey, "tool"}, {"args", ArgsKey, "args"}}, "call tools by name", bareNothing, "tools"},
	{"prompt.get", Low, []Key{{"names", NameKey, "name"}}, "get prompts by name", bareNothing, "names"},
	{"resource.read", Medium, []Key{{"uris", URIKey, "uri"}}, "read resources by URI", bareNothing, "uris"},
	{"secret.use", High, []Key{{"names", NameKey, "name"}}, "have a secret filled into an argument", bareNothing, "names"},
	{"memory.read", Low, []Key{keysKey}, "read memory keys", bareNothing, "keys"},
	{"memory.write", Medium, []Key{keysKey}, "write memory keys", bareNothing, "keys"},
	{"obs.append", Low, nil, "append to the agent's own log", bareAll, ""},
	{"obs.query", Medium, []Key{{"agents", IDKey, "agent"}}, "read logs: the agent's own, or those of the agents named", bareSelf, "agents"},

	{"rye.execute.tool", Medium, []Key{ryeKey}, "call tools by Rye id", bareNothing, ""},
	{"rye.execute.directive", Low, []Key{ryeKey}, "run directives (prompts)", bareNothing, ""},
	{"rye.execute.knowledge", Low, []Key{ryeKey}, "run knowledge items", bareNothing, ""},
	{"rye.search.tool", Low, []Key{ryeKey}, "see tools in lists", bareAll, ""},
	{"rye.search.directive", Low, []Key{ryeKey}, "see directives in lists", bareAll, ""},
	{"rye.search.knowledge", Low, []Key{ryeKey}, "see knowledge in lists", bareAll, ""},
	{"rye.load.tool", Low, []Key{ryeKey}, "read tool definitions", bareNothing, ""},
	{"rye.load.directive", Low, []Key{ryeKey}, "read directives (prompts)", bareNothing, ""},
	{"rye.load.knowledge", Medium, []Key{ryeKey}, "read knowledge (resources)", bareNothing, ""},
	{"rye.sign.tool", High, []Key{ryeKey}, "approve pins of tools", bareNothing, ""},
	{"rye.sign.directive", High, []Key{ryeKey}, "approve pins of directives", bareNothing, ""},
	{"rye.sign.knowledge", High, []Key{ryeKey}, "approve pins of knowledge", bareNothing, ""},

	{"provider.advisor", High, nil, "ask the provider's other model for advice", bareAll, ""},
	{"provider.browser_use", High, nil, "drive a browser of the provider", bareAll, ""},
	{"provider.code_execution", High, nil, "run code in a container of the provider", bareAll, ""},
	{"provider.computer_use", High, nil, "drive a computer of the provider", bareAll, ""},
	{"provider.document_library", High, nil, "search documents kept at the provider", bareAll, ""},
	{"provider.file_search", High, nil, "search files kept at the provider", bareAll, ""},
	{"provider.files", High, nil, "read and write files kept at the provider", bareAll, ""},
	{"provider.google_maps", High, nil, "ask Google Maps through the provider", bareAll, ""},
	{"provider.image_generation", High, nil, "have the provider make images", bareAll, ""},
	{"provider.skills", High, nil, "run skills kept at the provider", bareAll, ""},
	{"provider.subagent", High, nil, "have another agent run at the provider", bareAll, ""},
	{"provider.view_image", High, nil, "have the provider look at images", bareAll, ""},
	{"provider.web_fetch", High, nil, "fetch from any host through the provider", bareAll, ""},
	{"provider.web_search", High, nil, "search the whole web through the provider", bareAll, ""},
	{"provider.x_search", High, nil, "search X through the provider", bareAll, ""},
}

// providerEntry is the line of every other provider.<name> verb: providers think of
// tools faster than tables are written.
var providerEntry = Entry{"", High, nil, "use a tool of the model's provider that cannot be scoped", bareAll, ""}
