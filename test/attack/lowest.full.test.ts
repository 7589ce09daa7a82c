// Attacks of users without a role; see README.md.
import { lowest } from './lowest.ts'
import { attackAll } from './suite.ts'

attackAll('users without a role', 'short', lowest)
