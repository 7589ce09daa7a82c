// Attacks of other nodes on an agent; see README.md.
import { peers } from './peers.ts'
import { attackAll } from './suite.ts'

attackAll('other nodes', 'short', peers)
