// svc3 agent uninstall
import { uninstallCommand } from './service.ts'

export const command = uninstallCommand('agent')
