// svc3 agent. The agent itself is imported when it starts, so that help is fast.
import { defineCommand } from '../cli/command.ts'
import { agentOptions, agentTable } from './agent-options.ts'

export const command = defineCommand({
  description:
    'Joins the cluster with a token of svc3 node join-token, and later with the key of the node. Makes outgoing connections\nonly. Ctrl-C stops the agent; VMs keep running, and the next agent takes them over.',
  ownSignals: true,
  arguments: {},
  options: agentTable,
  examples: [
    {
      line: 'svc3 agent --join-token-file token.txt',
      does: 'Join a cluster and run VMs',
    },
    {
      line: 'svc3 agent --api-url https://svc3.example.com --join-token-file token.txt',
      does: 'Join by another address of the server',
    },
    { line: 'svc3 agent', does: 'Start the agent of a node that has joined' },
    { line: 'svc3 agent --renew-key', does: 'Replace the key of the node' },
    {
      line: 'svc3 agent --remove-unknown',
      does: 'Delete VMs that were kept because the server had other or older data',
    },
    {
      line: 'svc3 agent --driver apple --api-url https://svc3.example.com --join-token-file token.txt',
      does: 'Join a Mac with Apple silicon and tart',
    },
    {
      line: 'svc3 agent --name fake-1 --driver simulated --data ./fake-1 --join-token-file token.txt -a http://127.0.0.1:8080',
      does: 'Join a simulated node',
    },
  ],
  async run(context, { options }) {
    const agent = await agentOptions(context, options)
    const { runAgent } = await import('./run-agent.ts')
    return runAgent(agent)
  },
})
