// Attacks of registries; see README.md.

import { registry } from './registry.ts'
import { attackAll } from './suite.ts'

attackAll('registries', 'long', registry)
