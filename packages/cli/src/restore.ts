import type { Command } from 'commander'
import {
  addMaintenanceOptions,
  type MaintenanceFlags,
  printLost,
  printReport,
  runOffline,
} from './offline-command.ts'

type RestoreFlags = MaintenanceFlags & {
  readonly from: string
  readonly keys?: string
  readonly acceptLostBlobs?: boolean
}

/** `tollbase restore`: puts a backup into an empty data folder or database. */
export function addRestoreCommand(program: Command, finish: (code: number) => void): void {
  addMaintenanceOptions(program.command('restore'))
    .description('put a backup into an empty data folder, checking every block and file')
    .requiredOption('--from <folder>', 'the backup')
    .option('--keys <folder>', 'the folder of the keys (those in the data folder)')
    .option('--accept-lost-blobs', 'go on without the blobs whose files are missing or damaged')
    .action(async ({ from, keys, acceptLostBlobs: acceptLost, ...flags }: RestoreFlags) => {
      const { restoreBackup } = await import('@tollbase/server/operator/backup/restore-backup')
      finish(
        await runOffline(flags, {
          run: (config, progress) => restoreBackup(config, { from, keys, acceptLost }, progress),
          print: (report) => {
            printReport(report)
            if (!report.equal && report.lost !== undefined)
              console.log('--accept-lost-blobs restores everything else')
            if (!report.equal) return
            if (report.lost !== undefined) printLost(report.lost)
            console.log(`restored as of ${report.made_at}; what came after it is lost`)
            console.log(
              'payments made before the next start buy nothing; their money is held for their payers, see tollbase held --help',
            )
            if (report.missing !== undefined)
              console.log(`put back ${report.missing}: encrypted records cannot be read without it`)
          },
        }),
      )
    })
}
