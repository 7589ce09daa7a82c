// Attacks of guests on the agent of their node; see README.md.
import { guestOneByOne } from './guest.ts'
import { attackAll } from './suite.ts'

attackAll('guests', 'long', guestOneByOne)
