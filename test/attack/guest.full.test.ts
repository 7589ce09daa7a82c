// Attacks of guests on the agent of their node; see README.md.
import { guest } from './guest.ts'
import { attackAll } from './suite.ts'

attackAll('guests', 'short', guest)
