// Random requests of every caller; see README.md.
import { random } from './random.ts'
import { attackAll } from './suite.ts'

attackAll('random requests', 'long', random)
