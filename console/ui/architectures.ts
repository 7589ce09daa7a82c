// The processor architectures of nodes and images, as people know them.
export const architectures = { arm64: 'Apple silicon (arm64)', amd64: 'Intel (amd64)' }
