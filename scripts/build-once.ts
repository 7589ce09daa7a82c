// Before `npm start`: builds the program unless it is built. Programs of this checkout that run are not to find the folder of
// the build gone for a moment, and a start is quicker.
import { isBuilt } from './sources.ts'

if (!isBuilt()) {
  process.stderr.write('svc3: Building the service and its console\n')
  await (await import('./build.ts')).buildProgram()
}
