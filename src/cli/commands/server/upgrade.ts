// svc3 server upgrade
import { upgradeCommand } from '../agent/service.ts'

export const command = upgradeCommand('server')
