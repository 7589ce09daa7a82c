// Attacks of other nodes on an agent; see README.md.
import { peersOneByOne } from './peers.ts'
import { attackAll } from './suite.ts'

attackAll('other nodes', 'long', peersOneByOne)
