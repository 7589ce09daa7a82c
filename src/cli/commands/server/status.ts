// svc3 server status
import { statusCommand } from '../agent/service.ts'

export const command = statusCommand('server')
