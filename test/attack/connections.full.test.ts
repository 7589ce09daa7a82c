// Attacks through tunnels and terminals, by callers and by guests; see README.md.
import { connections } from './connections.ts'
import { attackAll } from './suite.ts'

attackAll('tunnels and terminals', 'short', connections)
