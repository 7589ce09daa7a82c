// Keeps compiled code beside the bundle, where no other user can plant any and each build starts without it. svc3.ts
// imports this first: the cache serves only what is loaded after it is enabled.
const { join } = process.getBuiltinModule('node:path')
const here = import.meta.dirname

if (!here.endsWith(join('src', 'bin'))) process.getBuiltinModule('node:module').enableCompileCache(join(here, 'cache'))
