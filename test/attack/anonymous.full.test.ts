// Attacks without a token; see README.md.
import { anonymous } from './anonymous.ts'
import { attackAll } from './suite.ts'

attackAll('anonymous callers', 'short', anonymous)
