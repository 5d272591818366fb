-- Weights by the names that models use: l.q, w.embed. See names.lua.
local names = require "lib.names"
local weights = {}

local gguf = checkpoint.kind == "gguf"

-- A word of a shape or of a range: a number or a field.
local function size(c, word)
	return math.tointeger(tonumber(word)) or c[word]
end

local function shape(c, words)
	local dims = {}
	for word in words:gmatch "%S+" do
		dims[#dims + 1] = size(c, word)
	end
	return dims
end

-- One tensor for each expert, one behind the other.
local function of_experts(c, name, dims)
	local pieces, rows = {}, dims[2]
	for e = 0, c.experts - 1 do
		pieces[e + 1] = {name:gsub("#", e), 0, rows, rows}
	end
	return pieces
end

-- Rows from start on in every height rows; one such range for each expert.
local function of_rows(name, start, height, dims)
	local pieces = {}
	local count = #dims == 3 and dims[1] or 1
	for e = 0, count - 1 do
		pieces[e + 1] = {name, e * height + start, dims[#dims - 1],
			count * height}
	end
	return pieces
end

-- The pieces of the first spelling whose tensors are there. When none is, the
-- first, for weight to complain about.
local function find(c, prefix, spellings, dims)
	local first
	for spelling in spellings:gmatch "[^|]+" do
		local words = spelling:gmatch "[^][:]+"
		local name, start, height = words(), words(), words()
		name = prefix .. name
		local pieces = name
		if start then
			pieces = of_rows(name, size(c, start), size(c, height),
				dims)
		elseif name:find "#" then
			name = name:gsub("#", 0)
			pieces = of_experts(c, prefix .. spelling, dims)
		end
		if checkpoint.tensor(name) then
			return pieces
		end
		first = first or name
	end
	return first
end

-- GGUF files hold norms and decays as they are used.
local function reading(c, role)
	if gguf or role == "vector" then
		return role and {dtype = "f32"}
	elseif role == "norm" then
		return {dtype = "f32",
			map = c.norms_less_one and "one_plus" or nil}
	elseif role == "decay" then
		return {map = "neg_exp"}
	end
end

-- A table that makes the weight of a row of rows when asked for it.
local function lookup(c, rows, name, prefix)
	return setmetatable({name = name}, {__index = function(_, key)
		local row = rows[key]
		if not row then
			blame("there is no weight '" .. key .. "'", key, rows)
		end
		local dims = shape(c, row[3])
		local at = row == names.model.head and "" or prefix
		local pieces = find(c, at, gguf and row[1] or row[2], dims)
		local full = name and name .. "." .. key or key
		local value = weight(full, dims, pieces, reading(c, row[4]))
		return value -- no tail call: weight blames this file's caller
	end})
end

-- Everything in a folder but the head has a prefix.
local function folder_prefix()
	local nested = "model.language_model."
	return checkpoint.tensor(nested .. "embed_tokens.weight") and nested
		or "model."
end

function weights.open(c)
	local prefix = gguf and "" or folder_prefix()
	local layers = prefix .. (gguf and "blk." or "layers.")
	local w = lookup(c, names.model, nil, prefix)
	function w.layer(i)
		return lookup(c, names.layer, "layer." .. i, layers .. i .. ".")
	end
	return w
end

return strict(weights, "function of lib.weights")
