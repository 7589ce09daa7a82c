# A formula for Homebrew, as a template: `node scripts/formula.ts TARBALL URL` fills in what stands in double braces.
# It goes into a tap of yours (homebrew-svc3/Formula/svc3.rb); then `brew install YOU/svc3/svc3`.
class Svc3 < Formula
  desc "Runs macOS virtual machines on a cluster of Apple silicon and Intel hosts"
  homepage "{{homepage}}"
  url "{{url}}"
  version "{{version}}"
  sha256 "{{sha256}}"
  license "Apache-2.0"

  depends_on "node"

  def install
    system "npm", "install", *std_npm_args
    bin.install_symlink Dir["#{libexec}/bin/*"]
    man1.install_symlink Dir["#{libexec}/lib/node_modules/svc3/docs/man/*.1"]
    generate_completions_from_executable(bin/"svc3", "completion")
  end

  def caveats
    <<~EOS
      To make this Mac a node, save the output of svc3 node join-token as join.txt, then run:
        brew install openai/tools/tart
        svc3 agent doctor --driver apple
        sudo svc3 agent install --driver apple --join-token-stdin < join.txt
      On Intel, use brew install qemu and --driver qemu --network user.
    EOS
  end

  test do
    assert_match "client #{version}", shell_output("#{bin}/svc3 --version")
  end
end
