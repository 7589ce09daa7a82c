// Attacks of nodes; see README.md.

import { node } from './node.ts'
import { attackAll } from './suite.ts'

attackAll('nodes', 'long', node)
