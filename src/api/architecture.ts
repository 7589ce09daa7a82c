// The processors that VMs are made for. Apart from the schemas, so that importing the names loads nothing else.
export const architectures = ['arm64', 'amd64'] as const
export type Architecture = (typeof architectures)[number]
