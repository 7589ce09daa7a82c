// svc3 agent upgrade
import { upgradeCommand } from './service.ts'

export const command = upgradeCommand('agent')
