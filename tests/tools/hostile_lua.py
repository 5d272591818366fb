"""Hostile model files: a table of Lua sources and the words of the sentence
that refuses them. Files that a source may try to reach lie beside it."""

LUA = [
	# never ending
	("loop", "while true do end", ["m.lua:1", "million steps"]),
	("goto", "::a:: goto a", ["million steps"]),
	("goto-maze", """
local i = 0
::a:: i = i + 1 if i % 2 == 0 then goto b end goto a
::b:: goto a""", ["million steps"]),
	("goto-into", "goto x; local a = 1 ::x:: print(a)", ["m.lua:1"]),
	("repeat", "repeat until false", ["million steps"]),
	("for", "for i = 1, math.huge do end", ["million steps"]),
	("tail-calls", "local function f() return f() end f()",
	 ["million steps"]),
	("iterator", "for _ in function() return 1 end do end",
	 ["million steps"]),
	("pcall-loop", "while true do pcall(error) end", ["pcall"]),
	("index-loop", """
local t = {}
setmetatable(t, {__index = function(t, k) return t[k + 1] end})
local x = t[1]""", ["m.lua"]),
	("index-chain", """
local t = {}
for i = 1, 3000 do t = setmetatable({}, {__index = t}) end
local x = t.y""", ["m.lua:4", "chain too long"]),
	("index-self", "local t = {} t.__index = t setmetatable(t, t)"
	 " local x = t.y", ["m.lua:1", "chain too long"]),
	("newindex-loop", """
local t = setmetatable({}, {__newindex = function(t, k, v) t[k] = v end})
t.x = 1""", ["m.lua"]),
	("sort-loop", """
local t = {}
for i = 1, 100000 do t[i] = i end
table.sort(t, function(a, b) while true do end end)""",
	 ["million steps"]),
	("sort-liar", """
local t = {}
for i = 1, 1000 do t[i] = i end
table.sort(t, function() return true end)""", ["m.lua"]),
	("gsub-loop", 'local s = ("x"):gsub("x", function() while true do end'
	 " end)", ["million steps"]),
	("pattern", """
local s = ""
for i = 1, 30 do s = s .. "a" end
local x = s:find(("a?"):sub(1) .. "(a*)*(a*)*b")
while true do end""", ["million steps"]),
	("tostring-loop", "tostring(setmetatable({}, {__tostring = function()"
	 " while true do end end}))", ["million steps"]),
	("close-loop", "do local x <close> = setmetatable({}, {__close ="
	 " function() while true do end end}) end", ["million steps"]),
	("finalizer", "setmetatable({}, {__gc = function() while true do end"
	 " end})", ["finalizers"]),
	("finalizer-late", """
local m = {}
setmetatable({}, m)
m.__gc = function() while true do end end
return 1""", ["m.lua"]),
	("len", "setmetatable({}, {__len = function() return 1 << 60 end})",
	 ["m.lua:1", "__len"]),
	("len-late", """
local m = {}
local t = setmetatable({}, m)
m.__len = function() return 1 << 60 end
table.insert(t, 1)
error("length " .. #t)""", ["length 1"]),
	("call", "setmetatable({}, {__call = print})", ["m.lua:1", "__call"]),
	("call-late", """
local m = {}
local t = setmetatable({}, m)
m.__call = t
t()""", ["m.lua:5", "attempt to call"]),
	("pattern-backtracks", """
local s = ""
for i = 1, 12 do s = s .. ("x") .. s end
local x = s:find(".-.-.-.-y")""", ["m.lua:4", "million steps"]),
	("insert-loop", """
local t = {}
for i = 1, 1000000 do t[i] = 0 end
while true do table.insert(t, 1, 0) end""",
	 ["m.lua:4", "million steps"]),
	("concat-loop", """
local t = {}
for i = 1, 1000000 do t[i] = "" end
while true do table.concat(t) end""", ["m.lua:4", "million steps"]),
	("unpack-loop", "while true do local x = table.unpack({}, 1, 900000)"
	 " end", ["m.lua:1", "million steps"]),
	("select-loop", """
local function f(...) while true do local n = select("#", ...) end end
f(table.unpack({}, 1, 900000))""", ["m.lua:2", "arguments"]),
	("append-loop", "local s = '' for i = 1, 1e9 do s = s .. 'x' end",
	 ["m.lua", "MiB"]),
	("random", "math.random()", ["m.lua:1", "'random'"]),
	("randomseed", "math.randomseed(1)", ["m.lua:1", "'randomseed'"]),
	("next", "next({})", ["m.lua:1", "'next'"]),
	("pairs-order", """
local text = ""
for k, v in pairs {zeta = 1, [3] = 1, beta = 1, 1, 2, [2.5] = 1, alpha = 1,
	[-1] = 1, [true] = 1, gamma = 1, [false] = 1} do
	text = text .. " " .. tostring(k)
end
error(text)""", [" -1 1 2 2.5 3 alpha beta gamma zeta false true"]),
	("pairs-keys", "pairs {[{}] = 1}", ["m.lua:1", "no order"]),
	("pairs-deletes", """
local t, n = {a = 1, b = 2, c = 3}, 0
for k in pairs(t) do t.b = nil n = n + 1 end
error("visited " .. n)""", ["visited 2"]),
	("address", "error(tostring({}))", ["m.lua:1", "address"]),
	("address-format", 'error(("%s"):format(print))',
	 ["m.lua:1", "address"]),
	("library-misspelt", 'require "lib.blokcs"',
	 ["m.lua:1", "did you mean 'lib.blocks'"]),
	("block-misspelt", 'require("lib.blocks").mpl()',
	 ["m.lua:1", "did you mean 'mlp'"]),
	("checkpoint-misspelt", "return checkpoint.confg",
	 ["m.lua:1", "did you mean 'config'"]),
	("input-misspelt", 'input "tokns"',
	 ["m.lua:1", "did you mean 'tokens'"]),
	("error-in-close", """
do local x <close> = setmetatable({}, {__close = function() error "e2" end})
error "e1" end""", ["m.lua"]),
	# memory
	("concat", 'local s = "x" while true do s = s .. s end', ["MiB"]),
	("table", "local t = {} while true do t[#t + 1] = {} end", ["MiB"]),
	("table-concat", """
local t, s = {}, "x"
for i = 1, 20 do s = s .. s end
for i = 1, 1000 do t[i] = s end
s = table.concat(t)""", ["MiB"]),
	("format-width", 'string.format("%999999999d", 1)',
	 ["m.lua:1", "invalid conversion"]),
	("format-bomb", """
local s, f = "x", ""
for i = 1, 20 do s = s .. s end
for i = 1, 400 do f = f .. "%s" end
local a = {}
for i = 1, 400 do a[i] = s end
s = f:format(table.unpack(a))""", ["MiB"]),
	("format-missing", 'string.format("%s")',
	 ["m.lua:1", "no value"]),
	("format-pointer", 'error(string.format("%p", {}) .. "\\n\\27[2J", 0)',
	 ["m.lua:1", "address"]),
	("rep", '("x"):rep(1 << 40)', ["m.lua:1", "'rep'"]),
	("unpack", "table.unpack({}, 1, 1 << 30)",
	 ["m.lua:1", "million steps"]),
	("unpack-many", "local t = {table.unpack({}, 1, 900000)}"
	 " while true do end", ["m.lua:1", "million steps"]),
	("select", "select(-1)", ["m.lua:1", "out of range"]),
	("gsub-bomb", """
local s = "x"
for i = 1, 12 do s = s:gsub(".", s) end""", ["m"]),
	("pack-bomb", 'string.pack("!16 i16 Xi16 s8", 1, "x")'
	 ' string.pack("c2000000000", "x")', ["MiB"]),
	("upvalues", """
local f = function() end
while true do local g = f f = function() return g end end""", ["MiB"]),
	("nodes", """
local x = input "tokens"
while true do x = reshape(x, {T}) end""", ["m.lua:3", "ops"]),
	("states", """
for i = 1, 1 << 40 do state("s" .. i, "f32", {B, 1}) end""", ["m"]),
	("ignore-many", 'for i = 1, 1 << 40 do ignore("tok" .. i) end',
	 ["m.lua:1", "ignore"]),
	("weights-many", """
for i = 1, 1 << 40 do
	weight("w" .. i, {512, 256}, "token_embd.weight")
end""", ["m.lua:3", "weights"]),
	("pieces-many", """
local p = {}
for i = 1, 1000000 do p[i] = {"token_embd.weight", 0, 1, 512} end
while true do weight("w", {1000000, 256}, p) end""", ["m.lua:4", "pieces"]),
	("label-long", """
local s = "x"
for i = 1, 26 do s = s .. s end
label(input "tokens", s)
return 1""", ["m.lua"]),
	("state-name-long", """
local s = "x"
for i = 1, 26 do s = s .. s end
state(s, "f32", {B, 0})""", ["m.lua"]),
	("state-big", 'state("x", "f32", {1 << 62, 1 << 62}) return 1',
	 ["m.lua"]),
	# depth
	("recursion", "local function f() return 1 + f() end f()",
	 ["overflow"]),
	("recursion-c", """
local function f(s) return (s:gsub("x", f)) end
f "x" """, ["overflow"]),
	("recursion-sort", """
local function f() table.sort({1, 2}, f) end
f()""", ["overflow"]),
	("recursion-tostring", """
local t = {}
setmetatable(t, {__tostring = function(x) return tostring(x) end})
tostring(t)""", ["overflow"]),
	("parser-depth", "return " + "(" * 5000 + "1" + ")" * 5000,
	 ["m.lua"]),
	("parser-tables", "return " + "{" * 100000, ["m.lua"]),
	("parser-locals", "".join("local a%d = 1\n" % i for i in range(300)),
	 ["m.lua", "local variables"]),
	("parser-concat", "return " + "..".join(["'x'"] * 5000), ["m.lua"]),
	("require-self", 'require "m"', ["being loaded"]),
	# errors
	("error-table", "error {}", ["m.lua:1", "raised a table"]),
	("error-nil", "error(nil)", ["m.lua:1", "raised a nil"]),
	("error-true", "error(true)", ["raised a boolean"]),
	("error-number", "error(7, 0)", ["raised a number"]),
	("error-function", "error(print)", ["raised a function"]),
	("error-value", 'error(input "tokens")', ["raised a userdata"]),
	("error-tostring", """
error(setmetatable({}, {__tostring = function() return "x\\ny" end}))""",
	 ["raised a table"]),
	("error-lines", 'error("a\\nb\\r\\n\\27[2Jc")', ["a?b"]),
	("error-nul", 'error("a\\0b")', ["a"]),
	("error-long", 'local s = "x" for i = 1, 24 do s = s .. s end error(s)',
	 ["x"]),
	("error-percent", 'error("%s%n%s%n%d", 0)', ["%s%n%s%n%d"]),
	("error-empty", 'error("", 0)', ["m.lua"]),
	("error-of-global", "error(nothing)", ["no function or variable"]),
	("strict-percent", 'local t = strict({}, "%s%n") local x = t["%n"]',
	 ["%n"]),
	("blame-percent", 'blame("%s%n%s%n")', ["%s%n"]),
	("blame-bad", 'blame("a", "b", 3)', ["m.lua"]),
	# ways out
	("require-up", 'require "../../etc/passwd"', ["name of a library"]),
	("require-absolute", 'require "/etc/passwd"', ["name of a library"]),
	("require-dots", 'require "...etc.passwd"', ["name of a library"]),
	("require-nul", 'require "lib.config\\0.x"', ["library"]),
	("require-long", 'local s = "x" for i = 1, 16 do s = s .. s end'
	 " require(s)", ["no library"]),
	("require-missing", 'require "lib.no_such"', ["no library"]),
	("require-nothing", 'require "nothing"', ["returns nothing"]),
	("require-number", "require(7.5)", ["no library '7.5'"]),
	("require-table", "require {}", ["m.lua"]),
	("require-bytecode", 'require "bytecode"', ["m"]),
	("bytecode", "\x1bLua\x54\0", ["m"]),
	("io", 'io.open("/etc/passwd")', ["'io'"]),
	("os", 'os.execute("touch x")', ["'os'"]),
	("package", "package.loadlib()", ["'package'"]),
	("debug", "debug.sethook()", ["'debug'"]),
	("coroutine", "coroutine.wrap(function() while true do end end)()",
	 ["'coroutine'"]),
	("load", 'load("while true do end")()', ["'load'"]),
	("loadfile", 'loadfile("/etc/passwd")', ["'loadfile'"]),
	("dofile", 'dofile("/etc/passwd")', ["'dofile'"]),
	("collectgarbage", 'collectgarbage "stop"', ["'collectgarbage'"]),
	("xpcall", "xpcall(error, print)", ["'xpcall'"]),
	("dump", "string.dump(print)", ["m.lua:1", "'dump'"]),
	("rawset-global", 'rawset(_G, "x", 1) error(x)', ["m.lua", "number"]),
	("globals-metatable", "setmetatable(_G, {})",
	 ["m.lua:1", "protected"]),
	("globals-getmetatable", "getmetatable(_G).__index = print",
	 ["m.lua:1", "boolean"]),
	("strict-metatable", 'setmetatable(strict({}, "x"), {})',
	 ["m.lua:1", "protected"]),
	("strict-globals", 'strict(_G, "x")', ["m.lua:1", "already"]),
	("string-metatable", """
getmetatable("").__index = function() while true do end end
local x = ("x").y""", ["m.lua:2", "boolean"]),
	("string-gc", 'getmetatable("").__gc = 1 return 1',
	 ["m.lua:1", "boolean"]),
	("value-metatable", 'getmetatable(input "tokens").__gc = 1',
	 ["m.lua:1", "boolean"]),
	("value-index", 'rawget(input "tokens", 1)', ["m.lua"]),
	("tostring-of-value", """
local s = tostring
_G.tostring = nil
return 1""", ["m.lua"]),
	# graphs
	("returns-nothing", "return", ["m.lua", "returns", "logits"]),
	("returns-number", "return 1, 2", ["m.lua", "logits"]),
	("returns-input", 'return input "tokens", 4096', ["m.lua", "logits"]),
	("input-unknown", 'input "tokenz"', ["tokenz"]),
	("op-misspelt", "rms_nrom()", ["'rms_nrom'", "did you mean"]),
	("op-no-arguments", "linear()", ["linear", "argument 1"]),
	("op-wrong-arguments", "linear({}, 3)", ["linear", "argument 1"]),
	("op-many-arguments", 'silu(input "tokens", {}, 3, 4)', ["silu"]),
	("op-wrong-type", 'silu(input "tokens")', ["silu"]),
	("attribute-misspelt", 'rms_norm(input "tokens", input "tokens",'
	 " {esp = 1})", ["'esp'", "did you mean 'eps'"]),
	("attribute-nan", 'scale(input "tokens", {factor = 0/0})', ["factor"]),
	("attribute-table", 'scale(input "tokens", {factor = {}})',
	 ["factor"]),
	("attribute-negative", 'slice(input "tokens", {start = -1,'
	 " count = 1})", ["start"]),
	("reshape-big", 'reshape(input "tokens", {1 << 62, 1 << 62})',
	 ["reshape"]),
	("reshape-0", 'reshape(input "tokens", {0})', ["reshape"]),
	("reshape-deep", 'reshape(input "tokens", {1, 1, 1, 1, 1, 1, 1, 1, 1})',
	 ["reshape"]),
	("reshape-self", "local t = {} t[1] = t reshape(input 'tokens', t)",
	 ["reshape"]),
	("weight-missing", 'weight("w", {512, 256}, "token_embd.wieght")',
	 ["token_embd.wieght", "did you mean 'token_embd.weight'"]),
	("weight-shape", 'weight("w", {256, 512}, "token_embd.weight")',
	 ["token_embd.weight"]),
	("weight-no-pieces", 'weight("w", {512, 256}, {})', ["0 rows"]),
	("weight-bad-piece", 'weight("w", {512, 256}, {{}})', ["w"]),
	("weight-piece-number", 'weight("w", {512, 256}, {7})', ["piece"]),
	("weight-piece-wraps", 'weight("w", {512, 256}, {{"token_embd.weight",'
	 " 1 << 62, 1 << 62, 512}})", ["piece"]),
	("weight-piece-negative", 'weight("w", {512, 256},'
	 ' {{"token_embd.weight", -1, 513, 512}})', ["piece"]),
	("weight-piece-beyond", 'weight("w", {512, 256},'
	 ' {{"token_embd.weight", 1, 512, 512}})', ["token_embd.weight"]),
	("weight-shape-T", 'weight("w", {T, 256}, "token_embd.weight")',
	 ["token_embd.weight"]),
	("weight-shape-pieces-T", 'weight("w", {T, 256},'
	 ' {{"token_embd.weight", 0, 512, 512}})', ["w"]),
	("weight-shape-wraps", 'weight("w", {1 << 32, 1 << 32, 256},'
	 ' {{"token_embd.weight", 0, 512, 512}})', ["w"]),
	("weight-map", 'weight("w", {512, 256}, "token_embd.weight",'
	 ' {map = "log"})', ["log"]),
	("weight-dtype", 'weight("w", {512, 256}, "token_embd.weight",'
	 ' {dtype = "q4_0"})', ["q4_0"]),
	("weight-twice", 'weight("w", {512, 256}, "token_embd.weight")'
	 ' weight("w", {256}, "output_norm.weight")', ["w"]),
	("unread", """
local w = weight("w", {512, 256}, "token_embd.weight")
local x = take(embed(w, input "tokens"), input "rows")
return linear(x, w), 4096""", ["no op reads"]),
	("context-0", """
ignore "blk." ignore "output"
local w = weight("w", {512, 256}, "token_embd.weight")
local x = take(embed(w, input "tokens"), input "rows")
return linear(x, w), 0""", ["context"]),
	("syntax", "local = 3", ["m.lua:1"]),
	("empty", "", ["m.lua"]),
	("zeros", "\0" * 100, ["m.lua"]),
	("too-long", "-- " + "x" * (1 << 20), ["too long"]),
]

# Libraries beside the model.
BESIDE = {
	"nothing.lua": b"return",
	"bytecode.lua": b"\x1bLua\x54\0\x19\x93\r\n\x1a\n",
}
