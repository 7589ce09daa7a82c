// Stores compiled code in the folder of the bundle: other users cannot write there, and a new build starts without it.
// svc3.ts imports this file first, because the cache serves only modules that are loaded after it is enabled.
const { join } = process.getBuiltinModule('node:path')
const here = import.meta.dirname

if (!here.endsWith(join('src', 'bin'))) process.getBuiltinModule('node:module').enableCompileCache(join(here, 'cache'))
