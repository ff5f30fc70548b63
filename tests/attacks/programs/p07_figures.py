# Has matplotlib start programs, read files and write files.
# breach: write, leak_file, net_tcp
import matplotlib as mpl, matplotlib.pyplot as plt, matplotlib.animation as animation

figure, axes = plt.subplots()
axes.set_title("a")
tries = [
    lambda: figure.savefig("@CANARY@/pwned", format="png"),
    lambda: figure.savefig("artifacts/../../..@CANARY@/pwned", format="png"),
    lambda: plt.imsave("@CANARY@/pwned", [[1]], format="png"),
    lambda: plt.imread("http://127.0.0.1:@TCP@/a.png"),
    lambda: plt.style.use("http://127.0.0.1:@TCP@/a.mplstyle"),
    lambda: mpl.rc_file("@CANARY@/secret.txt"),
    lambda: print(open("@CANARY@/secret.txt").read()),
    lambda: mpl.font_manager.subprocess.run("echo x > @CANARY@/pwned", shell=True),
    lambda: mpl.subprocess.run("echo x > @CANARY@/pwned", shell=True),
    lambda: mpl.cbook.subprocess.run("echo x > @CANARY@/pwned", shell=True),
    lambda: print(mpl.font_manager.get_font("@CANARY@/secret.txt")),
    lambda: animation.FuncAnimation(figure, lambda _: [], frames=1).save("@CANARY@/pwned", writer="ffmpeg"),
    lambda: (plt.rc("text", usetex=True), figure.savefig("@CANARY@/pwned")),
]
for each in tries:
    try:
        each()
    except Exception as error:
        print(type(error).__name__, error)
