// Attacks of developers; see README.md.
import { developer } from './developer.ts'
import { attackAll } from './suite.ts'

attackAll('developers', 'long', developer)
