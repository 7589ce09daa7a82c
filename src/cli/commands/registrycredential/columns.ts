// The table columns of registry credentials.
import type { RegistryCredential } from '../../../api/access/registry-credentials.ts'
import type { Column } from '../../output/output.ts'

export const columns: readonly Column<RegistryCredential>[] = [
  { header: 'SERVER', cell: (item) => item.server },
  { header: 'USERNAME', cell: (item) => item.username },
  { header: 'INSECURE', wide: true, cell: (item) => item.allowInsecure },
  { header: 'UPDATED', wide: true, cell: (item) => ({ time: item.updatedAt }) },
  { header: 'BY', wide: true, cell: (item) => item.updatedBy },
]
