// The processor architectures of VMs. In a file without schemas, so that importing them loads nothing else.
export const architectures = ['arm64', 'amd64'] as const
export type Architecture = (typeof architectures)[number]
