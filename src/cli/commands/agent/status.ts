// svc3 agent status
import { statusCommand } from './service.ts'

export const command = statusCommand('agent')
