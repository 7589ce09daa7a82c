// Attacks of a host that runner pools name as GitHub; see README.md.
import { github } from './github.ts'
import { attackAll } from './suite.ts'

attackAll('hosts of runner pools', 'short', github)
