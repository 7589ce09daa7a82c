// svc3 server uninstall
import { uninstallCommand } from '../agent/service.ts'

export const command = uninstallCommand('server')
